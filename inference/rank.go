package inference

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"daisy/inference/ggml"
	"daisy/inference/model"
	"daisy/inference/plan"
	"daisy/rdma"
)

// rank computes one rank's part of every step. One goroutine owns it.
type rank struct {
	arch    model.Arch
	shards  []plan.Shard
	group   *rdma.Group
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
}

// maxPasses bounds the passes kept. A conversation alternates between decode and
// a few sizes of prefill.
const maxPasses = 12

func (r *rank) shard() plan.Shard { return r.shards[r.group.Rank()] }

// compute runs the step; on rank 0 r.logits then holds the logits of its outputs.
func (r *rank) compute(ctx context.Context, s *step) error {
	p, err := r.pass(s)
	if err != nil {
		return err
	}
	r.fill(s)
	for i, seg := range p.Segments {
		if err := r.backend.Compute(seg.Graph); err != nil {
			return err
		}
		if !seg.Sum.Valid() {
			// A goroutine that has not been rescheduled for ten milliseconds has
			// its place taken, and the scheduler's monitor then wakes every 20
			// microseconds for a while: 5 % of a decode step on two busy cores.
			runtime.Gosched()
			continue
		}
		sum := p.sums[i]
		sum.pull()
		if err := r.group.AllReduce(ctx, sum.values); err != nil {
			return err
		}
		sum.push(seg.Len)
	}
	if len(s.outputs) == 0 {
		return nil
	}
	p.logits.pull()
	return r.gather(ctx, p.logits.values, len(s.outputs))
}

// fill writes the step's inputs.
func (r *rank) fill(s *step) {
	m, vocab, window := r.mem, r.shard().Vocab, r.arch.Params().Window
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

// gather brings the logits of all vocabulary shards to rank 0.
func (r *rank) gather(ctx context.Context, own []float32, outputs int) error {
	if r.group.Rank() != 0 {
		return r.group.Send(ctx, 0, bytesOf(own))
	}
	vocab := r.arch.Params().Vocab
	put := func(x []float32, v plan.Range) {
		for o := range outputs {
			copy(r.logits[o*vocab+v.Lo:o*vocab+v.Hi], x[o*v.Len():])
		}
	}
	put(own, r.shard().Vocab)
	for from := 1; from < r.group.WorldSize(); from++ {
		v := r.shards[from].Vocab
		x := r.part[:outputs*v.Len()]
		if err := r.group.Recv(ctx, from, bytesOf(x)); err != nil {
			return err
		}
		put(x, v)
	}
	return nil
}

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
		rec, err := model.NewPass(r.arch, &r.mem.Memory, r.shard(), r.group.Rank(), r.group.WorldSize(), runs, outputs)
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
		p.logits = newShared[float32](p.Logits, p.outputs*r.shard().Vocab.Len(), host)
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

func (r *rank) close() {
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
