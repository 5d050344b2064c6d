//go:build !headless

package ui

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/driver/desktop"

	"daisy/assets"
)

// Available says whether this build has windows.
const Available = true

const (
	appID   = "app.daisy.Daisy"
	appName = "Daisy"
)

// desk is the running app.
type desk struct {
	cfg  Config
	fyne fyne.App
	ctx  context.Context // ends when Run returns
	wg   sync.WaitGroup  // goroutines of later
	do   func(func())    // see onMain
	down atomic.Bool     // the toolkit is going down

	tray    *tray // nil without a menu bar
	chat    *chatWindow
	cluster *clusterWindow
	consent *consent
	pairing *pairWindow

	standing *frames // of stand
	unwatch  func()
}

// Run shows the app and blocks until the person quits or ctx ends. It must be
// called on the main goroutine. ErrNoDisplay when there is no screen.
func Run(ctx context.Context, cfg Config) error {
	if !hasDisplay() {
		return ErrNoDisplay
	}
	app.SetMetadata(fyne.AppMetadata{
		ID: appID, Name: appName, Version: cfg.Version,
		Icon: fyne.NewStaticResource("daisy.png", assets.Icon),
		// This code calls the toolkit on its own goroutine only; without this
		// the toolkit takes a stack trace at every refresh to check that.
		Migrations: map[string]bool{"fyneDo": true},
	})
	a := app.NewWithID(appID)
	if err := loadTranslations(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	d := newDesk(ctx, cfg, a)
	defer d.wg.Wait()
	defer cancel()

	stop := context.AfterFunc(ctx, func() { d.onMain(d.quit) })
	defer stop()
	a.Lifecycle().SetOnStarted(func() {
		if cfg.Ready != nil {
			cfg.Ready()
		}
	})
	d.start()
	a.Run()
	d.down.Store(true)
	d.close()
	return nil
}

// quit ends Run.
func (d *desk) quit() {
	d.down.Store(true)
	d.fyne.Quit()
}

// newDesk makes the windows' owner; the windows are made when first shown.
func newDesk(ctx context.Context, cfg Config, a fyne.App) *desk {
	a.Settings().SetTheme(daisyTheme{})
	a.SetIcon(fyne.NewStaticResource("daisy.png", assets.Icon))
	return &desk{cfg: cfg, fyne: a, ctx: ctx, do: fyneDo}
}

// start puts the menu up and shows the windows that are wanted.
func (d *desk) start() {
	if bar, ok := d.fyne.(desktop.App); ok && hasTray() {
		d.tray = newTray(d, bar)
	}
	d.consent = newConsent(d)
	d.pairing = newPairWindow(d)
	d.standing = d.newFrames(d.stand)
	d.unwatch = d.cfg.Cluster.Subscribe(d.standing.signal)
	if d.cfg.Back != nil {
		d.comeBack(*d.cfg.Back)
		return
	}
	// Without a menu bar the windows are all there is.
	if d.cfg.OpenChat || d.tray == nil && !d.cfg.OpenCluster {
		d.showChat()
	}
	if d.cfg.OpenCluster {
		d.showCluster()
	}
}

// close undoes start; the toolkit has gone down by then.
func (d *desk) close() {
	if d.unwatch != nil {
		d.unwatch()
		d.standing.stop()
	}
	d.consent.close()
	d.pairing.close()
	if d.tray != nil {
		d.tray.close()
	}
	if d.chat != nil {
		d.chat.close()
	}
	if d.cluster != nil {
		d.cluster.close()
	}
}

func (d *desk) showChat() {
	if d.chat == nil {
		d.chat = newChatWindow(d)
	}
	d.show(d.chat.win)
}

func (d *desk) showCluster() {
	if d.cluster == nil {
		d.cluster = newClusterWindow(d)
	}
	d.show(d.cluster.win)
}

func (d *desk) show(w fyne.Window) {
	w.Show()
	w.RequestFocus()
	d.stand()
}

// window makes a window that hides instead of closing while the menu bar can
// bring it back; without one, closing the last window quits.
func (d *desk) window(title string) fyne.Window {
	w := d.fyne.NewWindow(title)
	w.SetCloseIntercept(func() {
		w.Hide()
		d.stand()
		if d.tray == nil && !d.anyVisible(w) {
			d.quit()
		}
	})
	return w
}

// anyVisible says whether a window other than w is shown.
func (d *desk) anyVisible(w fyne.Window) bool {
	if d.chat != nil && d.chat.win != w && d.chat.win.Content().Visible() {
		return true
	}
	return d.cluster != nil && d.cluster.win != w && d.cluster.win.Content().Visible()
}

func hasDisplay() bool {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return true
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}
