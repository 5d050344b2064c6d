package inference

import "slices"

// A flight is a step that has been announced and is not done. With one stage
// there is at most one, which launch finishes; with several, as many as stages, so
// that each stage has one to compute.
//
// When this rank is in the first stage it computes its part at launch, and what
// is under way then are the logits. Else it computes its part when the flight
// lands: the stages before it are busy meanwhile.
type flight struct {
	step step        // to be computed here yet; empty when that is done
	who  []*sequence // of each output
}

// launch begins the batch.
func (e *Engine) launch() error {
	r := e.rank
	stages := len(r.plan.Stages)
	if !r.place.First() {
		if err := r.announce(e.ctx, &e.batch, 0, r.stage); err != nil {
			return err
		}
		e.flights = append(e.flights, flight{e.batch.clone(), slices.Clone(e.who)})
		return nil
	}
	if err := r.announce(e.ctx, &e.batch, 0, stages); err != nil {
		return err
	}
	if err := r.compute(e.ctx, &e.batch); err != nil {
		return err
	}
	n := len(e.batch.outputs)
	switch {
	case n == 0:
	case r.last():
		e.sample(e.who)
	default:
		e.flights = append(e.flights, flight{who: slices.Clone(e.who)})
		e.wanted <- n
	}
	return nil
}

// land finishes the oldest flight.
func (e *Engine) land() error {
	f := e.flights[0]
	e.flights = slices.Delete(e.flights, 0, 1)
	if len(f.step.runs) == 0 {
		if err := <-e.collected; err != nil {
			return err
		}
		e.sample(f.who)
		e.sampled <- struct{}{}
		return nil
	}
	if err := e.rank.announce(e.ctx, &f.step, e.rank.stage, len(e.rank.plan.Stages)); err != nil {
		return err
	}
	if err := e.rank.compute(e.ctx, &f.step); err != nil {
		return err
	}
	if n := len(f.step.outputs); n > 0 && !e.rank.last() {
		if err := e.rank.collect(e.ctx, n); err != nil {
			return err
		}
	}
	e.sample(f.who)
	return nil
}

// sample continues the sequences of the outputs by the logits.
func (e *Engine) sample(who []*sequence) {
	vocab := e.rank.arch.Params().Vocab
	for i, q := range who {
		if !q.finished { // a cancelled one's logits are of no use
			q.sampled(e.rank.logits[i*vocab:(i+1)*vocab], e.info.ContextLength)
		}
	}
}

// startCollecting begins to take the logits that the last stage sends to this rank
// in the first, beside its own computing: a rank that waits to send its logits
// could not take what this one waits to send. What it returns ends that, and waits
// for it.
func (e *Engine) startCollecting() (stop func()) {
	if !e.rank.place.First() || e.rank.last() {
		return func() {}
	}
	stages := len(e.rank.plan.Stages)
	e.wanted, e.collected, e.sampled = make(chan int, stages+1), make(chan error, 1), make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range e.wanted {
			err := e.rank.collect(e.ctx, n)
			e.collected <- err
			if err != nil {
				return
			}
			if _, ok := <-e.sampled; !ok {
				return
			}
		}
	}()
	return func() {
		close(e.wanted)
		close(e.sampled)
		_ = e.rank.group.Close() // frees it from waiting for logits
		<-done
	}
}
