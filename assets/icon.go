//go:build ignore

// Icon draws icon.svg and tray.svg and renders their PNGs: go run icon.go.
// Plain paths without transforms, since the SVG readers that meet these files
// know little more.
package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"log"
	"math"
	"os"
	"strings"

	"github.com/fyne-io/oksvg"
	"github.com/srwiley/rasterx"
)

func main() {
	write("icon.svg", []byte(icon()))
	write("icon.png", render(icon(), 512))
	write("icon-128.png", render(icon(), 128)) // windows and Linux trays
	write("tray.svg", []byte(tray()))
}

// icon is the daisy on a green tile, with the margin that macOS expects.
func icon() string {
	shapes := []string{`<rect x="100" y="100" width="824" height="824" rx="185" ry="185" fill="#2F7D5B"/>`}
	shapes = append(shapes, flower(512, 12, 0.5, 90, 330, 112, "#CFE6DA")...)
	shapes = append(shapes, flower(512, 12, 0, 80, 352, 116, "#FFFFFF")...)
	shapes = append(shapes, `<circle cx="512" cy="512" r="112" fill="#E9A820"/>`, `<circle cx="512" cy="500" r="92" fill="#F8C648"/>`)
	return svg(1024, shapes)
}

// tray is the flower alone in one colour, for menu bars that set their own.
func tray() string {
	return svg(44, append(flower(22, 8, 0, 8, 20.5, 9.5, "#000000"), `<circle cx="22" cy="22" r="5.2" fill="#000000"/>`))
}

// flower is n petals around (c, c), from radius r0 to r1.
func flower(c float64, n int, turn, r0, r1, width float64, fill string) []string {
	var shapes []string
	for i := range n {
		angle := 2*math.Pi*(float64(i)+turn)/float64(n) - math.Pi/2
		cos, sin := math.Cos(angle), math.Sin(angle)
		at := func(r, side float64) string {
			return fmt.Sprintf("%.2f %.2f", c+r*cos-side*sin, c+r*sin+side*cos)
		}
		w, l := width/2, r1-r0
		shapes = append(shapes, fmt.Sprintf(`<path d="M%s C%s %s %s C%s %s %s C%s %s %s C%s %s %s Z" fill="%s"/>`,
			at(r0, 0),
			at(r0+l*.25, w*.75), at(r0+l*.45, w), at(r1-l*.25, w),
			at(r1-l*.05, w), at(r1, w*.5), at(r1, 0),
			at(r1, -w*.5), at(r1-l*.05, -w), at(r1-l*.25, -w),
			at(r0+l*.45, -w), at(r0+l*.25, -w*.75), at(r0, 0), fill))
	}
	return shapes
}

func svg(side int, shapes []string) string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n  %s\n</svg>\n",
		side, side, side, side, strings.Join(shapes, "\n  "))
}

// render rasters an SVG to a square PNG.
func render(text string, side int) []byte {
	drawing, err := oksvg.ReadIconStream(strings.NewReader(text))
	check(err)
	drawing.SetTarget(0, 0, float64(side), float64(side))
	img := image.NewRGBA(image.Rect(0, 0, side, side))
	drawing.Draw(rasterx.NewDasher(side, side, rasterx.NewScannerGV(side, side, img, img.Bounds())), 1)
	var out bytes.Buffer
	check((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, img))
	return out.Bytes()
}

func write(name string, data []byte) { check(os.WriteFile(name, data, 0o644)) }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
