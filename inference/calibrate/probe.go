package calibrate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"daisy/inference/ggml"
	"daisy/inference/plan"
)

// Duration is how long each part of a probe is measured.
const Duration = 250 * time.Millisecond

const (
	// streamBytes is the most that is streamed before anything comes again: more
	// than caches hold.
	streamBytes = 384 << 20
	maxMatrices = 256 // of a shape
	// columns is how many tokens prefill multiplies at once.
	columns = 128
	// sampled is how many matrices of the commonest shape are multiplied then.
	sampled = 2
	// launches are measured at a time, between two looks at the clock.
	launches = 64
)

// Rates are what a machine reaches, as plan.Node has them.
type Rates struct {
	Bandwidth float64 `json:"bytes_per_second"`
	Compute   float64 `json:"operations_per_second"`
	Launch    float64 `json:"launch_seconds"`
	Layer     float64 `json:"layer_seconds"`
}

// Node is a node with these rates.
func (r Rates) Node(name string, memory int64) plan.Node {
	return plan.Node{Name: name, Memory: memory, Bandwidth: r.Bandwidth, Compute: r.Compute, Launch: r.Launch, Layer: r.Layer}
}

// Mean of several machines' rates, such as of ranks that share one: of times, not
// of rates, since ranks wait for each other.
func Mean(of []Rates) (m Rates) {
	for _, r := range of {
		m.Bandwidth += 1 / r.Bandwidth
		m.Compute += 1 / r.Compute
		m.Launch += r.Launch
		m.Layer += r.Layer
	}
	n := float64(len(of))
	return Rates{n / m.Bandwidth, n / m.Compute, m.Launch / n, m.Layer / n}
}

// Corrected are the rates when for another model others were probed at the same
// place, and x was measured: where that probe was wrong, this one is as much. All that
// x took longer or less long counts as streaming and computing, which ranks share, and
// launches and layers as probed.
func (r Rates) Corrected(probed Rates, x plan.Measured) (Rates, error) {
	layers := float64(len(x.Model.Layers)) * probed.Layer
	x.Decode = 1 / max(1/x.Decode-layers, 0.5/x.Decode) // a tiny model's layers may be more than it took
	n, err := plan.Node{Launch: probed.Launch}.Calibrate(x)
	if err != nil {
		return r, err
	}
	r.Bandwidth *= n.Bandwidth / probed.Bandwidth
	if x.Prefill > 0 {
		r.Compute *= n.Compute / probed.Compute
	}
	return r, nil
}

// Options for Probe.
type Options struct {
	Threads     int  // that compute
	SharedCores bool // as in inference.Options
	// Part of the model that this machine will hold; 0 means all of it. A part that
	// caches hold streams faster.
	Part float64
	// Meet is called before each part, as often for all probes of one workload: it
	// may wait for others that probe at the same time. It may be nil.
	Meet func() error
}

func (o Options) part() float64 {
	if o.Part <= 0 {
		return 1
	}
	return o.Part
}

// Probe measures this machine for the workload. It blocks for about two seconds,
// or until ctx ends, which it looks at between the parts.
func Probe(ctx context.Context, w *Workload, o Options) (Rates, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := newProbe(ctx, o)
	if err != nil {
		return Rates{}, err
	}
	defer p.backend.Close()
	var r Rates
	if r.Launch, err = p.launch(); err != nil {
		return r, err
	}
	if r.Layer, err = p.layer(w, r.Launch); err != nil {
		return r, err
	}
	if len(w.Matrices) == 0 || !w.Matrices[0].InLayer && len(w.Matrices) == 1 {
		return r, errors.New("the model has no matrices to measure with")
	}
	if r.Bandwidth, err = p.stream(w); err != nil {
		return r, err
	}
	r.Compute, err = p.compute(w)
	return r, err
}

type probe struct {
	ctx     context.Context
	options Options
	backend *ggml.Backend
}

// newProbe chooses the backend as the engine does.
func newProbe(ctx context.Context, o Options) (*probe, error) {
	if gpu := ggml.NewGPU(); gpu != nil {
		return &probe{ctx, o, gpu}, nil
	}
	poll := 50
	if o.SharedCores {
		poll = 0
	}
	cpu, err := ggml.NewCPU(max(1, o.Threads), poll)
	return &probe{ctx, o, cpu}, err
}

// time computes a graph until Duration has passed and returns what one takes, in
// seconds. The first is for warming up.
func (p *probe) time(g ggml.Graph, atOnce int) (float64, error) {
	if op := g.Unsupported(p.backend); op != "" {
		return 0, fmt.Errorf("%s cannot compute %s", p.backend.Name(), op)
	}
	if err := p.backend.Compute(g); err != nil {
		return 0, err
	}
	if p.options.Meet != nil {
		if err := p.options.Meet(); err != nil {
			return 0, err
		}
	}
	start, n := time.Now(), 0
	for {
		for range atOnce {
			if err := p.backend.Compute(g); err != nil {
				return 0, err
			}
		}
		n += atOnce
		took := time.Since(start)
		if err := p.ctx.Err(); err != nil {
			return 0, err
		}
		if took >= Duration {
			return took.Seconds() / float64(n), nil
		}
	}
}
