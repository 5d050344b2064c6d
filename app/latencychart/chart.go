// Package latencychart draws how tokens per second fall with the latency of the
// links, measured and predicted, as a PNG. It is called once, by a benchmark, and
// blocks only while it writes.
package latencychart

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Point is one measurement.
type Point struct {
	Plan      string
	Latency   float64 // seconds, one way
	Measured  float64 // tokens a second
	Predicted float64
}

const (
	width  = 8 * vg.Inch
	height = 5 * vg.Inch
	dpi    = 120
)

// colors can be told apart with the common kinds of colour blindness (Okabe and Ito).
var colors = []color.RGBA{{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff}}

// PNG draws a curve for each plan: what was measured as dots on a line, the prediction
// dashed. Latency is on a logarithmic axis, so it must be positive.
func PNG(w io.Writer, title string, points []Point) error {
	if len(points) == 0 {
		return errors.New("there is nothing to draw")
	}
	p := plot.New()
	p.Title.Text, p.Title.Padding = title, vg.Points(10)
	p.X.Label.Text, p.Y.Label.Text = "latency between processes, one way, µs", "decode, tokens per second"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, microseconds{}
	p.Y.Min, p.Legend.Top = 0, true
	p.Add(plotter.NewGrid())
	var plans []string
	for _, x := range points {
		if !(x.Latency > 0) {
			return fmt.Errorf("a latency of %v has no place on a logarithmic axis", x.Latency)
		}
		if !slices.Contains(plans, x.Plan) {
			plans = append(plans, x.Plan)
		}
	}
	for i, name := range plans {
		var measured, predicted plotter.XYs
		for _, x := range points {
			if x.Plan == name {
				measured = append(measured, plotter.XY{X: x.Latency * 1e6, Y: x.Measured})
				predicted = append(predicted, plotter.XY{X: x.Latency * 1e6, Y: x.Predicted})
			}
		}
		line, dots, err := plotter.NewLinePoints(measured)
		if err != nil {
			return err
		}
		said, err := plotter.NewLine(predicted)
		if err != nil {
			return err
		}
		c := colors[i%len(colors)]
		line.Color, dots.Color, said.Color = c, c, c
		line.Width, said.Width, said.Dashes = vg.Points(1.8), vg.Points(1.4), []vg.Length{vg.Points(5), vg.Points(4)}
		dots.Shape, dots.Radius = draw.CircleGlyph{}, vg.Points(3)
		p.Add(line, dots, said)
		p.Legend.Add(name+", measured", line, dots)
		p.Legend.Add(name+", predicted", said)
	}
	p.Y.Max *= 1.15
	img := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
	p.Draw(draw.Crop(draw.New(img), vg.Points(10), -vg.Points(14), vg.Points(8), -vg.Points(8)))
	_, err := vgimg.PngCanvas{Canvas: img}.WriteTo(w)
	return err
}

// microseconds marks 1, 2 and 5 of each power of ten.
type microseconds struct{}

// Ticks implements plot.Ticker.
func (microseconds) Ticks(lo, hi float64) (ticks []plot.Tick) {
	for decade := 1.0; decade <= hi; decade *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if x := decade * m; x >= lo && x <= hi {
				ticks = append(ticks, plot.Tick{Value: x, Label: fmt.Sprint(x)})
			}
		}
	}
	return ticks
}
