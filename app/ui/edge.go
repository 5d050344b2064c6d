//go:build !headless

package ui

import (
	"sync"
	"time"

	"fyne.io/fyne/v2"
)

// onMain runs f on fyne's goroutine, without waiting, unless the app is going
// down. From any goroutine.
func (d *desk) onMain(f func()) {
	if d.down.Load() {
		return
	}
	d.do(func() {
		if !d.down.Load() {
			f()
		}
	})
}

// fyneDo is desk.do outside tests.
func fyneDo(f func()) { fyne.Do(f) }

// later runs work on a goroutine of its own and then its result on fyne's. Run
// waits for it; the result is dropped when the app has ended by then.
func (d *desk) later(work func() (show func())) {
	d.wg.Go(func() {
		if show := work(); show != nil {
			d.onMain(show)
		}
	})
}

// frameTime is the least time between two updates of what streams.
const frameTime = 33 * time.Millisecond

// frames turns any number of signals into at most one call per frameTime on
// fyne's goroutine. The last signal is always followed by a call.
type frames struct {
	onMain func(func())
	draw   func()

	mu      sync.Mutex // guards the fields below
	pending bool
	stopped bool
	last    time.Time
}

func (d *desk) newFrames(draw func()) *frames {
	return &frames{onMain: d.onMain, draw: draw}
}

// signal asks for a call of draw. From any goroutine; it does not block.
func (f *frames) signal() {
	f.mu.Lock()
	if f.pending || f.stopped {
		f.mu.Unlock()
		return
	}
	f.pending = true
	wait := frameTime - time.Since(f.last)
	f.mu.Unlock()
	if wait <= 0 {
		f.onMain(f.run)
		return
	}
	time.AfterFunc(wait, func() { f.onMain(f.run) })
}

func (f *frames) run() {
	f.mu.Lock()
	f.pending = false
	f.last = time.Now()
	stopped := f.stopped
	f.mu.Unlock()
	if !stopped {
		f.draw()
	}
}

// stop ends the calls.
func (f *frames) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
}
