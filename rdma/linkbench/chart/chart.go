// Package chart draws the result of a link benchmark: time and bandwidth
// against size, on logarithmic axes, as a PNG.
//
// It is apart from linkbench so that programs that only measure need no
// drawing. Nothing here blocks but the writer.
package chart

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"daisy/rdma/linkbench"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

const (
	width  = 13 * vg.Inch
	height = 6 * vg.Inch
	dpi    = 120
)

// colors are for the curves in the order of linkbench.Ops; they can be told
// apart with the common kinds of colour blindness (Okabe and Ito).
var colors = map[linkbench.Op]color.RGBA{
	linkbench.SendRecv:      {0x00, 0x72, 0xb2, 0xff},
	linkbench.AllReduce:     {0xd5, 0x5e, 0x00, 0xff},
	linkbench.ReduceScatter: {0xcc, 0x79, 0xa7, 0xff},
	linkbench.AllGather:     {0x00, 0x9e, 0x73, 0xff},
	linkbench.Broadcast:     {0xe6, 0x9f, 0x00, 0xff},
}

var (
	ink  = color.RGBA{0x33, 0x33, 0x33, 0xff}
	grid = color.RGBA{0xd9, 0xd9, 0xd9, 0xff}
)

// PNG draws the rows that have a size; of several pairs, a curve for the median
// of their values.
func PNG(w io.Writer, r *linkbench.Result) error {
	curves := curvesOf(r)
	if len(curves) == 0 {
		return fmt.Errorf("there is no measurement that depends on a size")
	}
	left := panel("Median time", durations{})
	right := panel("Bus bandwidth", rates{})
	for _, c := range curves {
		for _, side := range []struct {
			p      *plot.Plot
			points plotter.XYs
		}{{left, c.time}, {right, c.bandwidth}} {
			if len(side.points) == 0 {
				continue
			}
			line, points, err := plotter.NewLinePoints(side.points)
			if err != nil {
				return err
			}
			line.Color, points.Color = colors[c.op], colors[c.op]
			line.Width = vg.Points(1.8)
			points.Shape, points.Radius = draw.CircleGlyph{}, vg.Points(2.6)
			side.p.Add(line, points)
			if side.p == left {
				side.p.Legend.Add(string(c.op), line, points)
			}
		}
	}
	left.Legend.Top, left.Legend.Left = true, true
	left.Legend.XOffs, left.Legend.YOffs = vg.Points(12), vg.Points(-4)
	left.Legend.Padding, left.Legend.ThumbnailWidth = vg.Points(3), vg.Points(26)
	left.Legend.TextStyle = style(10.5)
	left.Legend.TextStyle.XAlign = text.XLeft

	img := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
	all := draw.New(img)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	title := style(16)
	title.XAlign, title.YAlign, title.Font.Weight = text.XLeft, text.YTop, stdfont.WeightBold
	all.FillText(title, vg.Point{X: vg.Points(18), Y: height - vg.Points(14)},
		fmt.Sprintf("%d ranks over %s", r.Ranks, r.Transport))
	body := draw.Crop(all, vg.Points(18), -vg.Points(24), vg.Points(14), -vg.Points(50))
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Points(22)}
	for i, c := range plot.Align([][]*plot.Plot{{left, right}}, tiles, body)[0] {
		[]*plot.Plot{left, right}[i].Draw(c)
	}
	_, err := vgimg.PngCanvas{Canvas: img}.WriteTo(w)
	return err
}

type curve struct {
	op              linkbench.Op
	time, bandwidth plotter.XYs
}

func curvesOf(r *linkbench.Result) (curves []curve) {
	for _, op := range linkbench.Ops() {
		times, bandwidths := map[int][]float64{}, map[int][]float64{}
		for _, row := range r.Rows {
			if row.Op == op && row.Bytes > 0 {
				times[row.Bytes] = append(times[row.Bytes], row.P50.Seconds())
				bandwidths[row.Bytes] = append(bandwidths[row.Bytes], row.Bandwidth)
			}
		}
		c := curve{op, medians(times), medians(bandwidths)}
		if len(c.time) > 0 {
			curves = append(curves, c)
		}
	}
	return curves
}

// medians are the points by size; what a logarithmic axis has no place for is
// left out.
func medians(bySize map[int][]float64) (xys plotter.XYs) {
	for n, vs := range bySize {
		slices.Sort(vs)
		if v := vs[len(vs)/2]; v > 0 {
			xys = append(xys, plotter.XY{X: float64(n), Y: v})
		}
	}
	slices.SortFunc(xys, func(a, b plotter.XY) int { return int(math.Copysign(1, a.X-b.X)) })
	return xys
}

func panel(title string, y plot.Ticker) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Title.TextStyle, p.Title.Padding = title, style(12.5), vg.Points(10)
	p.X.Label.Text, p.X.Label.TextStyle, p.X.Label.Padding = "bytes from each rank", style(10.5), vg.Points(4)
	p.X.Scale, p.Y.Scale = logScale{}, logScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = sizes{}, y
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Tick.Label.Color, a.Tick.Label.Font = ink, style(9.5).Font
		a.LineStyle.Color, a.Tick.LineStyle.Color = ink, ink
		a.Padding = vg.Points(4)
	}
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = grid, grid
	p.Add(g)
	return p
}

func style(points float64) text.Style {
	f := plot.DefaultFont
	f.Variant, f.Size = "Sans", font.Length(points)
	return text.Style{Color: ink, Font: f, XAlign: text.XCenter, Handler: plot.DefaultTextHandler}
}
