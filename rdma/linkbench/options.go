package linkbench

import (
	"fmt"
	"slices"
	"time"
)

const (
	// MaxBytes is the largest size.
	MaxBytes = 256 << 20
	// MaxSizes bounds how many sizes one run has.
	MaxSizes = 64
	// MaxBudget bounds how long one size may be measured.
	MaxBudget = time.Minute
)

// Options say what Run measures. All ranks give the same.
type Options struct {
	Ops    []Op          `json:"ops"`    // nil: all
	Sizes  []int         `json:"sizes"`  // in bytes, multiples of 4; nil: DefaultSizes
	Budget time.Duration `json:"budget"` // for each operation and size, about; 0: 150 ms
	// Progress is told each row as soon as it is there. It may be nil and may
	// differ between ranks.
	Progress func(Row) `json:"-"`
}

// DefaultSizes are the powers of four from 4 bytes to 4 MiB, and 8 MiB.
func DefaultSizes() []int {
	var s []int
	for n := 4; n <= 4<<20; n *= 4 {
		s = append(s, n)
	}
	return append(s, 8<<20)
}

// Complete checks the options and fills what is not given. It may be called for
// options from elsewhere: nothing is allocated for what it refuses.
func (o Options) Complete() (Options, error) {
	if o.Ops == nil {
		o.Ops = Ops()
	}
	if o.Sizes == nil {
		o.Sizes = DefaultSizes()
	}
	if o.Budget == 0 {
		o.Budget = 150 * time.Millisecond
	}
	if len(o.Ops) == 0 || len(o.Ops) > len(Ops()) || len(o.Sizes) == 0 {
		return o, fmt.Errorf("no operation or no size to measure")
	}
	for _, op := range o.Ops {
		if !slices.Contains(Ops(), op) {
			return o, fmt.Errorf("there is no operation %q", op)
		}
	}
	if len(o.Sizes) > MaxSizes {
		return o, fmt.Errorf("%d sizes are more than %d", len(o.Sizes), MaxSizes)
	}
	for _, n := range o.Sizes {
		if n < 4 || n > MaxBytes || n%4 != 0 {
			return o, fmt.Errorf("a size of %d bytes is not a multiple of 4 from 4 to %d", n, MaxBytes)
		}
	}
	if o.Budget < 0 || o.Budget > MaxBudget {
		return o, fmt.Errorf("a budget of %v is not in 0..%v", o.Budget, MaxBudget)
	}
	return o, nil
}
