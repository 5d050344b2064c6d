package inference

import (
	"context"
	"fmt"
	"slices"

	"daisy/inference/ggml"
	"daisy/inference/model"
	"daisy/inference/plan"
	"daisy/rdma"
)

// rank computes one rank's part of every step. One goroutine owns it.
type rank struct {
	arch    model.Arch
	plan    plan.Plan
	stage   int
	place   model.Place
	group   *rdma.Group
	team    *rdma.Group // the ranks of the stage
	backend *ggml.Backend
	weights *weights
	mem     *memory
	scratch *ggml.Scratch
	passes  []*pass // kept for reuse, the last used first

	head    [headBytes]byte // of the step on the wire
	payload []byte

	// Rank 0: the logits of all ranks, [vocabulary] for each output.
	logits []float32
	part   []float32 // one rank's, where they must be put in order
}

// pass is a recorded forward pass for one shape of batch.
type pass struct {
	*model.Pass
	runs    []model.Run
	outputs int
	sums    []shared[float32] // per segment: what the ranks sum
	logits  shared[float32]
	in, out shared[float32] // the residual stream between stages
}

// maxPasses bounds the passes kept. A conversation alternates between decode and
// a few sizes of prefill.
const maxPasses = 12

// compute runs this rank's part of the step. When rank 0 is in the last stage,
// r.logits there holds the logits of the step's outputs; else they are on their
// way to it, and collect takes them.
func (r *rank) compute(ctx context.Context, s *step) error {
	p, err := r.pass(s)
	if err != nil {
		return err
	}
	r.fill(s)
	if err := r.takeOver(ctx, p); err != nil {
		return err
	}
	for i, seg := range p.Segments {
		if err := r.backend.Compute(seg.Graph); err != nil {
			return err
		}
		if !seg.Sum.Valid() {
			continue
		}
		sum := p.sums[i]
		sum.pull()
		if err := r.team.AllReduce(ctx, sum.values); err != nil {
			return err
		}
		sum.push(seg.Len)
	}
	if !r.last() {
		return r.handOn(ctx, p)
	}
	if len(s.outputs) == 0 {
		return nil
	}
	p.logits.pull()
	return r.gather(ctx, p.logits.values, len(s.outputs))
}

// fill writes the step's inputs.
func (r *rank) fill(s *step) {
	m, vocab, window := r.mem, r.place.Shard.Vocab, r.arch.Params().Window
	i, mask := 0, 0
	for _, run := range s.runs {
		for j := range run.N {
			m.pos.values[i] = int32(run.Start + j)
			m.cacheRow.values[i] = int64(run.Slot*m.Context + run.Start + j)
			end := run.Start + j + 1
			show(m.mask.values[mask:mask+run.KV], 0, end)
			if window > 0 {
				show(m.window.values[mask:mask+run.KV], max(0, end-window), end)
			}
			mask += run.KV
			i++
		}
	}
	for i, t := range s.tokens {
		row := int(t) - vocab.Lo
		own := row >= 0 && row < vocab.Len()
		m.tokens.values[i], m.ownToken.values[i] = 0, 0
		if own {
			m.tokens.values[i], m.ownToken.values[i] = int32(row), 1
		}
	}
	copy(m.outRows.values, s.outputs)
	m.tokens.push(i)
	m.ownToken.push(i)
	m.pos.push(i)
	m.cacheRow.push(i)
	m.outRows.push(len(s.outputs))
	m.mask.push(mask)
	if window > 0 {
		m.window.push(mask)
	}
}

// show lets a token see the positions lo..hi-1 in its row of a mask.
func show(row []uint16, lo, hi int) {
	clear(row[lo:hi])
	for _, hidden := range [2][]uint16{row[:lo], row[hi:]} {
		for i := range hidden {
			hidden[i] = f16MinusInf
		}
	}
}

const f16MinusInf = 0xFC00

// pass finds or records the forward pass for a step's shape. Where a token
// stands does not matter, only how many there are and how far attention looks.
func (r *rank) pass(s *step) (*pass, error) {
	same := func(p *pass) bool {
		return p.outputs == len(s.outputs) && slices.EqualFunc(p.runs, s.runs, func(a, b model.Run) bool {
			return a.Slot == b.Slot && a.N == b.N && a.KV == b.KV
		})
	}
	if i := slices.IndexFunc(r.passes, same); i >= 0 {
		p := r.passes[i]
		copy(r.passes[1:i+1], r.passes[:i])
		r.passes[0] = p
		return p, nil
	}
	if len(r.passes) == maxPasses {
		r.passes[maxPasses-1].Close()
		r.passes = r.passes[:maxPasses-1]
	}
	p, err := r.record(s.runs, len(s.outputs))
	if err != nil {
		return nil, err
	}
	r.passes = slices.Insert(r.passes, 0, p)
	return p, nil
}

// record writes a forward pass and gives it scratch memory. When the scratch had
// to grow for it, what was placed before is lost, so it starts again.
func (r *rank) record(runs []model.Run, outputs int) (*pass, error) {
	for {
		rec, err := model.NewPass(r.arch, &r.mem.Memory, r.place, runs, outputs)
		if err != nil {
			return nil, err
		}
		grown, err := r.placeAll(rec)
		if err != nil {
			rec.Close()
			return nil, err
		}
		if grown {
			rec.Close()
			r.forget()
			continue
		}
		return r.share(&pass{Pass: rec, runs: slices.Clone(runs), outputs: outputs}), nil
	}
}

func (r *rank) placeAll(rec *model.Pass) (grown bool, err error) {
	for _, seg := range rec.Segments {
		g, err := r.scratch.Place(seg.Graph)
		if err != nil {
			return false, err
		}
		grown = grown || g
		if op := seg.Graph.Unsupported(r.backend); op != "" {
			return false, fmt.Errorf("%s cannot compute %s: %w", r.backend.Name(), op, ErrUnsupported)
		}
	}
	return grown, nil
}

// share finds the host's side of what ranks exchange.
func (r *rank) share(p *pass) *pass {
	host := r.backend.Memory().Host()
	p.sums = make([]shared[float32], len(p.Segments))
	for i, seg := range p.Segments {
		if seg.Sum.Valid() {
			p.sums[i] = newShared[float32](seg.Sum, seg.Len, host)
		}
	}
	if p.Logits.Valid() {
		p.logits = newShared[float32](p.Logits, p.outputs*r.place.Shard.Vocab.Len(), host)
	}
	if n := p.tokens() * r.arch.Params().Dim; p.In.Valid() {
		p.in = newShared[float32](p.In, n, host)
	}
	if n := p.tokens() * r.arch.Params().Dim; p.Out.Valid() {
		p.out = newShared[float32](p.Out, n, host)
	}
	return p
}

// forget drops all recorded passes, whose scratch memory has moved.
func (r *rank) forget() {
	for _, p := range r.passes {
		p.Close()
	}
	r.passes = r.passes[:0]
}

// close frees what the rank holds; free all but its place in the group.
func (r *rank) close() {
	r.free()
	_ = r.team.Close()
}

func (r *rank) free() {
	r.forget()
	if r.scratch != nil {
		r.scratch.Close()
	}
	if r.mem != nil {
		r.mem.close()
	}
	if r.weights != nil {
		r.weights.close()
	}
	r.backend.Close()
}
