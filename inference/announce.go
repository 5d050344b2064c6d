package inference

import "context"

// What rank 0 wants next goes to the others by broadcast while all share each
// layer. With several stages it goes to each rank by itself, because those of
// earlier stages hear it ahead of time: messages to a rank must come in the order
// in which it waits for them, and a rank of this rank's own stage or a later one
// first waits for what the step before it computes.

// announce sends the step from rank 0 to the ranks of stages from lo to hi-1, all
// but itself.
func (r *rank) announce(ctx context.Context, s *step, lo, hi int) error {
	if r.group.WorldSize() == 1 {
		return nil
	}
	r.payload = s.encode(r.head[:], r.payload)
	if err := r.tell(ctx, r.head[:], lo, hi); err != nil {
		return err
	}
	if s.inHead() {
		return nil
	}
	return r.tell(ctx, r.payload, lo, hi)
}

// tell sends p to the ranks of some stages.
func (r *rank) tell(ctx context.Context, p []byte, lo, hi int) error {
	if len(r.plan.Stages) == 1 {
		return r.group.Broadcast(ctx, 0, p)
	}
	for _, stage := range r.plan.Stages[lo:hi] {
		for _, to := range stage.Ranks {
			if to == 0 {
				continue
			}
			if err := r.group.Send(ctx, to, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellAll sends p to all other ranks. No step is under way to some of them only.
func (r *rank) tellAll(ctx context.Context, p []byte) error {
	if r.group.WorldSize() == 1 {
		return nil
	}
	return r.tell(ctx, p, 0, len(r.plan.Stages))
}

// hear receives what rank 0 tells.
func (r *rank) hear(ctx context.Context, p []byte) error {
	if len(r.plan.Stages) == 1 {
		return r.group.Broadcast(ctx, 0, p)
	}
	return r.group.Recv(ctx, 0, p)
}
