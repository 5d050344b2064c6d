package chart

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// logScale is plot.LogScale for a range of one value too.
type logScale struct{}

func (logScale) Normalize(lo, hi, x float64) float64 {
	if lo == hi {
		return 0.5
	}
	return math.Log(x/lo) / math.Log(hi/lo)
}

// sizes marks powers of four with binary units.
type sizes struct{}

func (sizes) Ticks(lo, hi float64) (ticks []plot.Tick) {
	for v := 1.0; v <= hi; v *= 4 {
		if v >= lo {
			ticks = append(ticks, plot.Tick{Value: v, Label: binary(v)})
		}
	}
	return ticks
}

func binary(v float64) string {
	units := []string{"", " Ki", " Mi", " Gi"}
	i := 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + units[i]
}

// durations marks powers of ten of seconds, rates of bytes per second.
type (
	durations struct{}
	rates     struct{}
)

func (durations) Ticks(lo, hi float64) []plot.Tick {
	return decades(lo, hi, func(v float64) string {
		switch {
		case v < 0.9e-6:
			return short(v*1e9) + " ns"
		case v < 0.9e-3:
			return short(v*1e6) + " µs"
		case v < 0.9:
			return short(v*1e3) + " ms"
		}
		return short(v) + " s"
	})
}

func (rates) Ticks(lo, hi float64) []plot.Tick {
	return decades(lo, hi, func(v float64) string {
		units := []string{" B/s", " kB/s", " MB/s", " GB/s", " TB/s"}
		i := 0
		for ; v >= 999 && i < len(units)-1; i++ {
			v /= 1000
		}
		return short(v) + units[i]
	})
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// decades marks powers of ten with labels, their doubles and halves without;
// in a short range those have labels too.
func decades(lo, hi float64, label func(float64) string) (ticks []plot.Tick) {
	all := hi < lo*1000
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if v < lo || v > hi {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 || all {
				t.Label = label(v)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}
