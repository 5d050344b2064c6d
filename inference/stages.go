package inference

import (
	"context"

	"daisy/inference/plan"
)

// Between stages the residual stream [Dim, tokens] travels in F32. It has the same
// bits on all ranks of a stage, so each rank of the next takes it from one of them.

// takeOver receives what the stage before has computed.
func (r *rank) takeOver(ctx context.Context, p *pass) error {
	if r.place.First() {
		return nil
	}
	before := r.plan.Stages[r.stage-1].Ranks
	if err := r.group.Recv(ctx, before[r.place.Rank%len(before)], bytesOf(p.in.values)); err != nil {
		return err
	}
	p.in.push(len(p.in.values))
	return nil
}

// handOn sends this rank's result to those of the next stage that take it from here.
func (r *rank) handOn(ctx context.Context, p *pass) error {
	p.out.pull()
	for j, to := range r.plan.Stages[r.stage+1].Ranks {
		if j%r.place.World != r.place.Rank {
			continue
		}
		if err := r.group.Send(ctx, to, bytesOf(p.out.values)); err != nil {
			return err
		}
	}
	return nil
}

func (r *rank) last() bool { return r.stage == len(r.plan.Stages)-1 }

// lastRanks are the ranks that compute logits.
func (r *rank) lastRanks() plan.Stage { return r.plan.Stages[len(r.plan.Stages)-1] }

// gather sends this rank's logits [vocabulary shard, outputs] to rank 0, which
// puts them together.
func (r *rank) gather(ctx context.Context, own []float32, outputs int) error {
	if r.group.Rank() != 0 {
		return r.group.Send(ctx, 0, bytesOf(own))
	}
	r.put(own, r.place.Shard.Vocab, outputs)
	return r.collect(ctx, outputs)
}

// collect receives the logits of the other ranks on rank 0.
func (r *rank) collect(ctx context.Context, outputs int) error {
	if r.group.WorldSize() == 1 {
		return nil
	}
	last := r.lastRanks()
	for j, from := range last.Ranks {
		if from == 0 {
			continue
		}
		v := last.Shards[j].Vocab
		x := r.part[:outputs*v.Len()]
		if err := r.group.Recv(ctx, from, bytesOf(x)); err != nil {
			return err
		}
		r.put(x, v, outputs)
	}
	return nil
}

// put copies logits of the vocabulary rows v to their place.
func (r *rank) put(x []float32, v plan.Range, outputs int) {
	vocab := r.arch.Params().Vocab
	for o := range outputs {
		copy(r.logits[o*vocab+v.Lo:o*vocab+v.Hi], x[o*v.Len():])
	}
}

// tokens counts the pass's.
func (p *pass) tokens() int {
	n := 0
	for _, r := range p.runs {
		n += r.N
	}
	return n
}
