// Package traytest is a system tray for tests: it takes the name
// org.kde.StatusNotifierWatcher on a session bus, so that apps show their tray
// icon to it, and reads and clicks their menus as a desktop would
// (com.canonical.dbusmenu). Run it under dbus-run-session, never on somebody's
// desktop.
//
// Concurrency: a Watcher and its Items may be used from several goroutines.
package traytest

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
)

const (
	watcherName = "org.kde.StatusNotifierWatcher"
	watcherPath = "/StatusNotifierWatcher"
	itemIface   = "org.kde.StatusNotifierItem"
	menuIface   = "com.canonical.dbusmenu"
	maxItems    = 64  // registered and not yet taken
	maxEntries  = 500 // of one menu
)

// Watcher is the tray.
type Watcher struct {
	conn  *dbus.Conn
	items chan *Item
}

// Start connects to the session bus and takes the tray's name. Close gives it
// back. An error when there is no bus or a tray is there already.
func Start() (*Watcher, error) {
	conn, err := dbus.ConnectSessionBus()
	if err != nil {
		return nil, fmt.Errorf("connecting to the session bus: %w", err)
	}
	w := &Watcher{conn: conn, items: make(chan *Item, maxItems)}
	if err := w.export(); err != nil {
		conn.Close()
		return nil, err
	}
	return w, nil
}

func (w *Watcher) export() error {
	if err := w.conn.Export(server{w}, watcherPath, watcherName); err != nil {
		return err
	}
	_, err := prop.Export(w.conn, watcherPath, prop.Map{watcherName: {
		"IsStatusNotifierHostRegistered": {Value: true},
		"ProtocolVersion":                {Value: int32(0)},
		"RegisteredStatusNotifierItems":  {Value: []string{}},
	}})
	if err != nil {
		return err
	}
	reply, err := w.conn.RequestName(watcherName, dbus.NameFlagDoNotQueue)
	if err != nil {
		return err
	}
	if reply != dbus.RequestNameReplyPrimaryOwner {
		return errors.New("there is a tray on this bus already")
	}
	return nil
}

// Close leaves the bus.
func (w *Watcher) Close() error { return w.conn.Close() }

// Item waits for the next app that shows a tray icon.
func (w *Watcher) Item(ctx context.Context) (*Item, error) {
	select {
	case i := <-w.items:
		return i, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for a tray icon: %w", ctx.Err())
	}
}

// server has the methods that apps call.
type server struct{ w *Watcher }

// RegisterStatusNotifierItem is called by an app with the path of its item, or
// with a bus name whose item is at the usual path.
func (s server) RegisterStatusNotifierItem(service string, sender dbus.Sender) *dbus.Error {
	i := &Item{conn: s.w.conn, owner: string(sender), path: "/StatusNotifierItem"}
	if len(service) > 0 && service[0] == '/' {
		i.path = dbus.ObjectPath(service)
	} else if service != "" {
		i.owner = service
	}
	if !i.path.IsValid() {
		return dbus.MakeFailedError(fmt.Errorf("not a path: %q", service))
	}
	select {
	case s.w.items <- i:
		return nil
	default:
		return dbus.MakeFailedError(errors.New("too many items"))
	}
}

// RegisterStatusNotifierHost is part of the interface; this tray is the host.
func (s server) RegisterStatusNotifierHost(string) *dbus.Error { return nil }

// Item is one app's icon.
type Item struct {
	conn  *dbus.Conn
	owner string
	path  dbus.ObjectPath
}

// Title is what the app calls itself.
func (i *Item) Title(ctx context.Context) (string, error) {
	var v dbus.Variant
	err := i.conn.Object(i.owner, i.path).
		CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, itemIface, "Title").Store(&v)
	if err != nil {
		return "", fmt.Errorf("reading the tray icon's title: %w", err)
	}
	title, ok := v.Value().(string)
	if !ok {
		return "", fmt.Errorf("the tray icon's title is a %T", v.Value())
	}
	return title, nil
}

// IconPixels are the sides of the icon's picture; zero when it has none.
func (i *Item) IconPixels(ctx context.Context) (width, height int, err error) {
	var v dbus.Variant
	err = i.conn.Object(i.owner, i.path).
		CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, itemIface, "IconPixmap").Store(&v)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the tray icon: %w", err)
	}
	var pictures []struct {
		W, H int32
		Data []byte
	}
	if err := v.Store(&pictures); err != nil {
		return 0, 0, fmt.Errorf("reading the tray icon: %w", err)
	}
	for _, p := range pictures {
		if int(p.W)*int(p.H)*4 == len(p.Data) {
			width, height = int(p.W), int(p.H)
		}
	}
	return width, height, nil
}
