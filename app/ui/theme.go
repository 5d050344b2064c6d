//go:build !headless

package ui

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
)

// Colours and sizes beyond those of the toolkit.
const (
	colorSidebar fyne.ThemeColorName = "daisy.sidebar"
	colorBubble  fyne.ThemeColorName = "daisy.bubble"
	colorCard    fyne.ThemeColorName = "daisy.card"
	colorLine    fyne.ThemeColorName = "daisy.line"

	sizeSmall  fyne.ThemeSizeName = "daisy.small"
	sizeTitle  fyne.ThemeSizeName = "daisy.title"
	sizeDigits fyne.ThemeSizeName = "daisy.digits"
)

// daisyTheme is calm paper with leaf green, light or dark as the system is.
type daisyTheme struct{}

var _ fyne.Theme = daisyTheme{}

type shade struct{ light, dark color.NRGBA }

func rgb(v uint32) color.NRGBA {
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}

func rgba(v uint32, a uint8) color.NRGBA {
	c := rgb(v)
	c.A = a
	return c
}

var shades = map[fyne.ThemeColorName]shade{
	theme.ColorNameBackground:          {rgb(0xFCFCFA), rgb(0x1B1D1C)},
	theme.ColorNameForeground:          {rgb(0x1F2421), rgb(0xE6E9E7)},
	theme.ColorNamePrimary:             {rgb(0x2F7D5B), rgb(0x63BF97)},
	theme.ColorNameForegroundOnPrimary: {rgb(0xFFFFFF), rgb(0x10241B)},
	theme.ColorNameFocus:               {rgba(0x2F7D5B, 0x40), rgba(0x63BF97, 0x40)},
	theme.ColorNameSelection:           {rgba(0x2F7D5B, 0x33), rgba(0x63BF97, 0x40)},
	theme.ColorNameHover:               {rgba(0x1F2421, 0x0C), rgba(0xFFFFFF, 0x12)},
	theme.ColorNamePressed:             {rgba(0x1F2421, 0x1E), rgba(0xFFFFFF, 0x22)},
	theme.ColorNameButton:              {rgb(0xEDEFEA), rgb(0x2D312F)},
	theme.ColorNameDisabledButton:      {rgb(0xF1F2EF), rgb(0x262927)},
	theme.ColorNameDisabled:            {rgb(0x757D78), rgb(0x8D9691)},
	theme.ColorNamePlaceHolder:         {rgb(0x7C847F), rgb(0x87908B)},
	theme.ColorNameInputBackground:     {rgb(0xFFFFFF), rgb(0x242726)},
	theme.ColorNameInputBorder:         {rgb(0x5C6560), rgb(0xABB4AF)}, // of check boxes too
	theme.ColorNameSeparator:           {rgb(0xE6E8E3), rgb(0x2E3230)},
	theme.ColorNameScrollBar:           {rgba(0x1F2421, 0x55), rgba(0xFFFFFF, 0x55)},
	theme.ColorNameScrollBarBackground: {rgba(0, 0), rgba(0, 0)},
	theme.ColorNameMenuBackground:      {rgb(0xFFFFFF), rgb(0x2A2D2C)},
	theme.ColorNameOverlayBackground:   {rgb(0xFFFFFF), rgb(0x252827)},
	theme.ColorNameHeaderBackground:    {rgb(0xF5F6F2), rgb(0x222524)},
	theme.ColorNameShadow:              {rgba(0, 0x22), rgba(0, 0x66)},
	theme.ColorNameError:               {rgb(0xB3362B), rgb(0xF0857B)},
	theme.ColorNameWarning:             {rgb(0x9A6700), rgb(0xE3B341)},
	theme.ColorNameSuccess:             {rgb(0x2F7D5B), rgb(0x63BF97)},

	colorSidebar: {rgb(0xF3F5F0), rgb(0x151716)},
	colorBubble:  {rgb(0xE4F0E9), rgb(0x24382F)},
	colorCard:    {rgb(0xFFFFFF), rgb(0x232625)},
	colorLine:    {rgb(0xE3E6E0), rgb(0x313634)},
}

func (daisyTheme) Color(name fyne.ThemeColorName, variant fyne.ThemeVariant) color.Color {
	s, ok := shades[name]
	switch {
	case !ok:
		return theme.DefaultTheme().Color(name, variant)
	case variant == theme.VariantDark:
		return s.dark
	default:
		return s.light
	}
}

var sizes = map[fyne.ThemeSizeName]float32{
	theme.SizeNameText:               14,
	theme.SizeNamePadding:            5,
	theme.SizeNameInnerPadding:       8,
	theme.SizeNameLineSpacing:        5,
	theme.SizeNameInputRadius:        8,
	theme.SizeNameSelectionRadius:    6,
	theme.SizeNameInputBorder:        1,
	theme.SizeNameScrollBar:          10,
	theme.SizeNameScrollBarSmall:     4,
	theme.SizeNameInlineIcon:         18,
	theme.SizeNameSeparatorThickness: 1,

	sizeSmall:  12,
	sizeTitle:  18,
	sizeDigits: 52,
}

func (daisyTheme) Size(name fyne.ThemeSizeName) float32 {
	if v, ok := sizes[name]; ok {
		return v
	}
	return theme.DefaultTheme().Size(name)
}

func (daisyTheme) Font(style fyne.TextStyle) fyne.Resource { return theme.DefaultTheme().Font(style) }

func (daisyTheme) Icon(name fyne.ThemeIconName) fyne.Resource {
	return theme.DefaultTheme().Icon(name)
}
