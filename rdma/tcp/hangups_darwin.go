package tcp

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// hangups waits for peers to end their direction of a connection. It is a
// kqueue that reports the end of a stream; a low-water mark above all buffers
// keeps data under way from waking anybody.
type hangups struct {
	fd    int
	r, w  *os.File // closing w makes wait return
	event [1]unix.Kevent_t
	index map[uint64]int // by descriptor
}

var errStopped = errors.New("stopped")

func watchHangups(peers []*peer) (*hangups, error) {
	fd, err := unix.Kqueue()
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	h := &hangups{fd: fd, index: map[uint64]int{}}
	if h.r, h.w, err = os.Pipe(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	add := func(s int, index int) error {
		h.index[uint64(s)] = index
		e := unix.Kevent_t{Fflags: unix.NOTE_LOWAT, Data: math.MaxInt32}
		unix.SetKevent(&e, s, unix.EVFILT_READ, unix.EV_ADD|unix.EV_CLEAR)
		_, err := unix.Kevent(fd, []unix.Kevent_t{e}, nil, nil)
		return err
	}
	err = add(int(h.r.Fd()), -1)
	for i, p := range peers {
		if p == nil || err != nil {
			continue
		}
		c, cerr := p.raw.SyscallConn()
		if err = cerr; err == nil {
			if cerr := c.Control(func(s uintptr) { err = add(int(s), i) }); err == nil {
				err = cerr
			}
		}
	}
	if err != nil {
		h.stop()
		h.close()
		return nil, err
	}
	return h, nil
}

// wait blocks, on a thread of its own, until a peer has hung up, and returns
// its index. It fails after stop.
func (h *hangups) wait() (int, error) {
	for {
		n, err := unix.Kevent(h.fd, nil, h.event[:], nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		// A full receive buffer is reported too; it is no end.
		if n == 0 || h.event[0].Flags&unix.EV_EOF == 0 {
			continue
		}
		i := h.index[h.event[0].Ident]
		if i < 0 {
			return 0, errStopped
		}
		return i, nil
	}
}

// stop ends wait; to be called once.
func (h *hangups) stop() { h.w.Close() }

// close frees what wait uses, after its last call.
func (h *hangups) close() {
	h.r.Close()
	unix.Close(h.fd)
}
