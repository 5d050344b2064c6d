//go:build !headless && !darwin

package ui

import (
	"fyne.io/fyne/v2"
	"github.com/godbus/dbus/v5"

	"daisy/assets"
)

// hasTray asks the session bus for somebody who shows tray icons. Without one
// an app in the tray could not be reached any more.
func hasTray() bool {
	bus, err := dbus.ConnectSessionBus()
	if err != nil {
		return false
	}
	defer bus.Close()
	var there bool
	err = bus.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, "org.kde.StatusNotifierWatcher").Store(&there)
	return err == nil && there
}

// trayIcon is PNG: trays on Linux read nothing else.
func trayIcon() fyne.Resource { return fyne.NewStaticResource("daisy.png", assets.Icon) }
