//go:build !headless

package ui

import (
	"image/color"
	"math"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	"github.com/stretchr/testify/require"
)

// contrast is that of WCAG 2: from 1 to 21.
func contrast(a, b color.Color) float64 {
	light := func(c color.Color) float64 {
		part := func(v uint32) float64 {
			s := float64(v) / 0xffff
			if s <= 0.04045 {
				return s / 12.92
			}
			return math.Pow((s+0.055)/1.055, 2.4)
		}
		r, g, b, _ := c.RGBA()
		return 0.2126*part(r) + 0.7152*part(g) + 0.0722*part(b)
	}
	x, y := light(a)+0.05, light(b)+0.05
	return max(x/y, y/x)
}

// An empty check box that can be ticked is seen, and better than one that cannot.
// The toolkit draws the first in the colour of input borders.
func TestCheckBoxesAreSeen(t *testing.T) {
	for name, variant := range map[string]fyne.ThemeVariant{"light": theme.VariantLight, "dark": theme.VariantDark} {
		of := func(n fyne.ThemeColorName) color.Color { return daisyTheme{}.Color(n, variant) }
		for _, ground := range []fyne.ThemeColorName{colorCard, theme.ColorNameBackground, theme.ColorNameOverlayBackground} {
			box := contrast(of(theme.ColorNameInputBorder), of(ground))
			require.Greater(t, box, 4.5, "%s on %s", name, ground)
			require.Greater(t, box, 1.2*contrast(of(theme.ColorNameDisabled), of(ground)), "%s on %s", name, ground)
		}
	}
}
