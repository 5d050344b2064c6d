//go:build !headless

package ui

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// column stacks its objects in the middle, no wider than a line that reads
// well. Heights follow the wrapped text at that width.
type column struct {
	maxWidth float32
	gap      float32
	margin   float32
}

func (c column) width(available float32) float32 {
	return max(0, min(c.maxWidth, available-2*c.margin))
}

func (c column) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	w := c.width(size.Width)
	x, y := (size.Width-w)/2, c.margin
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		h := o.MinSize().Height
		if o.Size().Width != w {
			// Wrapped text knows its height only once it has its width.
			o.Resize(fyne.NewSize(w, h))
			h = o.MinSize().Height
		}
		o.Resize(fyne.NewSize(w, h))
		o.Move(fyne.NewPos(x, y))
		y += h + c.gap
	}
}

func (c column) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var w, h float32
	n := 0
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		w = max(w, m.Width)
		h += m.Height
		n++
	}
	if n > 1 {
		h += float32(n-1) * c.gap
	}
	return fyne.NewSize(min(w, c.maxWidth)+2*c.margin, h+2*c.margin)
}

// trailing puts its one object at the right edge, as wide as its text wants
// and at most share of the width.
type trailing struct {
	natural func() float32
	share   float32
}

func (t trailing) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	w := min(t.natural(), size.Width*t.share)
	for _, o := range objects {
		o.Resize(fyne.NewSize(w, size.Height))
		o.Move(fyne.NewPos(size.Width-w, 0))
	}
}

func (t trailing) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var size fyne.Size
	for _, o := range objects {
		size = size.Max(o.MinSize())
	}
	return size
}

// inset adds room around its one object.
type inset struct{ top, right, bottom, left float32 }

func (p inset) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	for _, o := range objects {
		o.Move(fyne.NewPos(p.left, p.top))
		o.Resize(fyne.NewSize(size.Width-p.left-p.right, size.Height-p.top-p.bottom))
	}
}

func (p inset) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var size fyne.Size
	for _, o := range objects {
		size = size.Max(o.MinSize())
	}
	return size.AddWidthHeight(p.left+p.right, p.top+p.bottom)
}

// fixedSize gives its objects all there is and asks for that size, whatever
// they want.
type fixedSize fyne.Size

func (s fixedSize) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	for _, o := range objects {
		o.Move(fyne.Position{})
		o.Resize(size)
	}
}

func (s fixedSize) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.Size(s) }

// fixedWidth gives its objects that width, and all the height there is.
type fixedWidth float32

func (w fixedWidth) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	for _, o := range objects {
		o.Move(fyne.Position{})
		o.Resize(fyne.NewSize(float32(w), size.Height))
	}
}

func (w fixedWidth) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.NewSize(float32(w), 0) }

// padded is o with the same room on all sides.
func padded(room float32, o fyne.CanvasObject) *fyne.Container {
	return container.New(inset{room, room, room, room}, o)
}

// panel is a rectangle in a theme colour that follows the theme.
type panel struct {
	widget.BaseWidget
	fill, stroke fyne.ThemeColorName
	radius       float32
}

func newPanel(fill, stroke fyne.ThemeColorName, radius float32) *panel {
	p := &panel{fill: fill, stroke: stroke, radius: radius}
	p.ExtendBaseWidget(p)
	return p
}

func (p *panel) CreateRenderer() fyne.WidgetRenderer {
	r := &panelRenderer{panel: p, rect: canvas.NewRectangle(color.Transparent)}
	r.paint()
	return r
}

type panelRenderer struct {
	panel *panel
	rect  *canvas.Rectangle
}

func (r *panelRenderer) paint() {
	p := r.panel
	th := p.Theme()
	v := fyne.CurrentApp().Settings().ThemeVariant()
	r.rect.FillColor = th.Color(p.fill, v)
	r.rect.CornerRadius = p.radius
	if p.stroke != "" {
		r.rect.StrokeColor = th.Color(p.stroke, v)
		r.rect.StrokeWidth = 1
	}
}

func (r *panelRenderer) Layout(size fyne.Size)        { r.rect.Resize(size) }
func (r *panelRenderer) MinSize() fyne.Size           { return fyne.Size{} }
func (r *panelRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.rect} }
func (r *panelRenderer) Destroy()                     {}
func (r *panelRenderer) Refresh() {
	r.paint()
	r.rect.Refresh()
}

// text is a wrapped label in a size and colour of the theme.
func text(s string, size fyne.ThemeSizeName, importance widget.Importance) *widget.Label {
	l := widget.NewLabel(s)
	l.Wrapping = fyne.TextWrapWord
	l.SizeName = size
	l.Importance = importance
	return l
}

// line is a label of one line that ends in … where there is no room.
func line(s string, size fyne.ThemeSizeName, importance widget.Importance) *widget.Label {
	l := widget.NewLabel(s)
	l.Truncation = fyne.TextTruncateEllipsis
	l.SizeName = size
	l.Importance = importance
	return l
}

func heading(s string) *widget.Label {
	l := widget.NewLabel(s)
	l.TextStyle.Bold = true
	l.SizeName = theme.SizeNameText
	return l
}
