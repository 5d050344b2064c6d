package plan

import (
	"maps"
	"slices"
	"strings"
)

// Chip is what is published of one of Apple's chips.
type Chip struct {
	Name string
	// Bandwidth of its memory in bytes a second: published by Apple (the "Tech
	// Specs" pages on support.apple.com), not measured.
	Bandwidth float64
	// Cores of its GPU, the most that it is sold with at that bandwidth.
	Cores int
}

// chips by lower-case name. A chip that is sold with two bandwidths has its larger
// one, and the smaller one under its number of GPU cores.
var chips = map[string]Chip{}

func init() {
	for _, c := range []Chip{
		{"M1", 68.25e9, 8}, {"M1 Pro", 200e9, 16}, {"M1 Max", 400e9, 32}, {"M1 Ultra", 800e9, 64},
		{"M2", 100e9, 10}, {"M2 Pro", 200e9, 19}, {"M2 Max", 400e9, 38}, {"M2 Ultra", 800e9, 76},
		{"M3", 100e9, 10}, {"M3 Pro", 150e9, 18}, {"M3 Max", 400e9, 40}, {"M3 Max 30-core", 300e9, 30}, {"M3 Ultra", 819e9, 80},
		{"M4", 120e9, 10}, {"M4 Pro", 273e9, 20}, {"M4 Max", 546e9, 40}, {"M4 Max 32-core", 410e9, 32},
		{"M5", 153e9, 10}, {"M5 Pro", 307e9, 20}, {"M5 Max", 614e9, 40}, {"M5 Max 32-core", 460e9, 32},
	} {
		chips[strings.ToLower(c.Name)] = c
	}
}

// ChipNamed finds a chip by its name, as in "M3 Ultra" or "Apple M3 Ultra".
func ChipNamed(name string) (Chip, bool) {
	c, ok := chips[strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "apple ")]
	return c, ok
}

// ChipNames are the names of all chips there are figures for.
func ChipNames() (names []string) {
	for _, key := range slices.Sorted(maps.Keys(chips)) {
		names = append(names, chips[key].Name)
	}
	return names
}

// What a chip is taken to reach until it has been measured: estimates from others'
// reports. 70B Q4_K_M decodes at 14.4 tokens/s on an M3 Ultra, 3B at 171, 8B at 20.9
// on an M4 (llama.cpp), which 0.9 of the published bandwidth and 0.13 ms a layer come
// near to. Prefill of 70B at 162 tokens/s on 80 cores makes 0.28e12 operations a
// second for each. Kimi K2's 61 layers make 21.6 tokens/s on two and 28.3 on four
// (exo): what does not shrink is 24 ms, so a segment costs about 0.1 ms besides.
const (
	chipBandwidth = 0.9
	chipLayer     = 130e-6
	chipCompute   = 0.28e12 // of one GPU core
	chipLaunch    = 100e-6
)

// Node estimates what a machine with the chip and so many bytes of memory does and
// gives: of the memory, what macOS recommends as the most for the GPU, two thirds up
// to 32 GiB and three quarters beyond.
func (c Chip) Node(name string, memory int64) Node {
	gives := memory / 4 * 3
	if memory <= 32<<30 {
		gives = memory / 3 * 2
	}
	return Node{
		Name: name, Memory: gives,
		Bandwidth: c.Bandwidth * chipBandwidth, Compute: float64(c.Cores) * chipCompute,
		Launch: chipLaunch, Layer: chipLayer,
	}
}
