package chart

import (
	"bytes"
	"image/png"
	"testing"
	"time"

	"daisy/rdma/linkbench"

	"github.com/stretchr/testify/require"
)

// TestPNG looks for the curves' colours in the picture.
func TestPNG(t *testing.T) {
	res := &linkbench.Result{Transport: "tcp", Ranks: 2}
	for i, op := range []linkbench.Op{linkbench.SendRecv, linkbench.AllReduce} {
		for n := 4; n <= 4<<20; n *= 4 {
			res.Rows = append(res.Rows, linkbench.Row{Op: op, Bytes: n, P50: time.Duration((i + 1) * (5000 + n)), Bandwidth: float64((i + 1) * n * 1000)})
		}
	}
	res.Rows = append(res.Rows, linkbench.Row{Op: linkbench.Barrier, P50: 5000})
	var b bytes.Buffer
	require.NoError(t, PNG(&b, res))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	count := map[linkbench.Op]int{}
	for x := range img.Bounds().Dx() {
		for y := range img.Bounds().Dy() {
			r, g, bl, _ := img.At(x, y).RGBA()
			for op, c := range colors {
				if byte(r>>8) == c.R && byte(g>>8) == c.G && byte(bl>>8) == c.B {
					count[op]++
				}
			}
		}
	}
	require.Len(t, count, 2)
	require.Greater(t, count[linkbench.SendRecv], 500)
	require.Greater(t, count[linkbench.AllReduce], 500)
	require.Equal(t, 1560, img.Bounds().Dx())

	// One point makes a picture, none does not.
	res.Rows = res.Rows[:1]
	require.NoError(t, PNG(&b, res))
	require.Error(t, PNG(&b, &linkbench.Result{}))
}

func TestLabels(t *testing.T) {
	require.Equal(t, []string{"4", "1 Ki", "256 Ki", "1 Mi"}, []string{binary(4), binary(1024), binary(256 << 10), binary(1 << 20)})
	var labels []string
	for _, tick := range (rates{}).Ticks(9e5, 2e9) {
		if tick.Label != "" {
			labels = append(labels, tick.Label)
		}
	}
	require.Equal(t, []string{"1 MB/s", "10 MB/s", "100 MB/s", "1 GB/s"}, labels)
}
