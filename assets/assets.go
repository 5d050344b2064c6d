// Package assets holds the files that the program carries: icons and
// translations. Callers: app. No logic.
package assets

import "embed"

// Icon is the app's icon, 128 pixels wide, as PNG.
//
//go:embed icon-128.png
var Icon []byte

// TrayIcon is the one-coloured flower for menu bars, as SVG.
//
//go:embed tray.svg
var TrayIcon []byte

// Translations has one JSON file per language in its folder "translations".
//
//go:embed translations/*.json
var Translations embed.FS
