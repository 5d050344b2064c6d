package latencychart

import (
	"bytes"
	"image/png"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPNG(t *testing.T) {
	points := []Point{{"tensor_parallel", 20e-6, 60, 62}, {"tensor_parallel", 2e-3, 5, 5.5}, {"pipeline", 20e-6, 30, 29}, {"pipeline", 2e-3, 25, 26}}
	var b bytes.Buffer
	require.NoError(t, PNG(&b, "a model", points))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	for i, plan := range []string{"tensor_parallel", "pipeline"} {
		seen := false
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				r, g, b, _ := img.At(x, y).RGBA()
				c := colors[i]
				seen = seen || r>>8 == uint32(c.R) && g>>8 == uint32(c.G) && b>>8 == uint32(c.B)
			}
		}
		require.True(t, seen, plan)
	}
	require.Error(t, PNG(&b, "", nil))
	require.Error(t, PNG(&b, "", []Point{{"solo", 0, 1, 1}}))
}
