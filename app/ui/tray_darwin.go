//go:build !headless

package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"daisy/assets"
)

// hasTray: the menu bar is always there.
func hasTray() bool { return true }

// trayIcon is a template image: macOS colours it to suit the menu bar.
func trayIcon() fyne.Resource {
	return theme.NewThemedResource(fyne.NewStaticResource("daisy.svg", assets.TrayIcon))
}
