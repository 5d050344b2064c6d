package plan

import (
	"errors"
	"fmt"
	"math"
)

// Measured is how fast a node ran a model alone.
type Measured struct {
	Model   *Model
	Usage   Usage   // prompt and answer as measured, one sequence
	Decode  float64 // tokens a second
	Prefill float64 // tokens a second; 0: not measured
}

// Calibrate returns the node with the rates that explain what was measured, so
// that Predict can be asked about other models and about groups. Launch is taken as
// it is: a probe measures it. From one measurement of decode, Layer is what
// Bandwidth (which a probe measures too) leaves to explain; when it leaves nothing,
// Bandwidth is raised to what was reached. From more, on models
// whose layers differ much in weight, both are fitted. Compute is that at which prefill of the last
// measurement that has it comes out right.
//
// One token's decode is taken to be bound by memory, as it is wherever Compute is
// more than about four operations a byte of Bandwidth.
//
// Ranks that share one machine must be measured while all of them run, since they
// share its memory.
func (n Node) Calibrate(measured ...Measured) (Node, error) {
	if len(measured) == 0 {
		return n, errors.New("nothing was measured")
	}
	// Least squares, relative to each time, of time = bytes/Bandwidth + layers*Layer.
	var bb, bl, ll, bt, lt float64
	var last Measured
	for _, x := range measured {
		if err := x.Usage.check(x.Model, 1); err != nil {
			return n, err
		}
		if !positive(x.Decode) || x.Prefill != 0 && !positive(x.Prefill) {
			return n, fmt.Errorf("decode of %v and prefill of %v tokens/s", x.Decode, x.Prefill)
		}
		t := 1/x.Decode - n.Launch
		if t <= 0 {
			return n, fmt.Errorf("%v tokens/s are faster than launches of %v s allow", x.Decode, n.Launch)
		}
		b, l := x.bytes()/t, float64(len(x.Model.Layers))/t
		bb, bl, ll, bt, lt = bb+b*b, bl+b*l, ll+l*l, bt+b, lt+l
		if x.Prefill > 0 {
			last = x
		}
	}
	slow, layer := bt/bb, 0.0 // seconds a byte, when layers cost nothing besides
	if det := bb*ll - bl*bl; len(measured) > 1 && det > 1e-9*bb*ll {
		if a, b := (bt*ll-lt*bl)/det, (lt*bb-bt*bl)/det; a > 0 && b > 0 {
			slow, layer = a, b
		}
	} else if positive(n.Bandwidth) && 1/n.Bandwidth < slow {
		slow = 1 / n.Bandwidth
		layer = max(0, (lt-bl*slow)/ll)
	}
	n.Bandwidth, n.Layer = 1/slow, layer
	if last.Prefill > 0 {
		return n.calibrateCompute(last)
	}
	return n, n.check()
}

// bytes are those that decoding a token streams.
func (x Measured) bytes() float64 {
	free := Node{Bandwidth: 1, Compute: math.Inf(1)} // a second a byte, all else free
	return x.predict(free).Token.Compute
}

func (x Measured) predict(n Node) Prediction {
	return x.Model.Shape.Solo().Predict(x.Model, []Node{n}, Uniform(1, Link{}), []int{0}, x.Usage)
}

// calibrateCompute finds the compute that explains a prefill, by halving: more
// compute is never slower.
func (n Node) calibrateCompute(x Measured) (Node, error) {
	lo, hi := 1e6, 1e18
	n.Compute = hi
	if x.predict(n).Prefill < x.Prefill {
		return n, fmt.Errorf("prefill of %v tokens/s is faster than the weights can be read", x.Prefill)
	}
	for range 100 {
		n.Compute = math.Sqrt(lo * hi)
		if x.predict(n).Prefill < x.Prefill {
			lo = n.Compute
		} else {
			hi = n.Compute
		}
	}
	return n, n.check()
}
