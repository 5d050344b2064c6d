package linkbench

import "time"

// window is how many messages are streamed before the answer: 64 as in osu_bw,
// fewer of long ones.
func window(nBytes int) int { return min(64, max(4, 16<<20/nBytes)) }

// pair measures send/receive between two ranks at one size; a drives. The
// others wait in the broadcast of the result.
func (r *run) pair(a, b, nBytes int) error {
	if err := r.g.Barrier(r.ctx); err != nil {
		return err
	}
	row := Row{Op: SendRecv, Pair: &[2]int{a, b}, Bytes: nBytes}
	var each time.Duration
	var err error
	for range warmUps(nBytes) {
		if each, err = r.pingPong(a, b, nBytes); err != nil {
			return err
		}
	}
	times, err := r.agree(a, iterations(r.budget/2, 2*each))
	if err != nil {
		return err
	}
	samples := make([]time.Duration, times)
	for i := range samples {
		if samples[i], err = r.pingPong(a, b, nBytes); err != nil {
			return err
		}
	}
	if _, err = r.stream(a, b, nBytes, 2); err != nil {
		return err
	}
	once, err := r.stream(a, b, nBytes, window(nBytes))
	if err != nil {
		return err
	}
	rounds, err := r.agree(a, min(iterations(r.budget/2, once), 1000))
	if err != nil {
		return err
	}
	took := make([]time.Duration, rounds)
	for i := range took {
		if took[i], err = r.stream(a, b, nBytes, window(nBytes)); err != nil {
			return err
		}
	}
	all, err := r.gather(append(samples, took...))
	if err != nil {
		return err
	}
	row.summarize(all[a][:times])
	var sum time.Duration
	for _, t := range all[a][times:] {
		sum += t
	}
	row.Bandwidth = float64(rounds) * float64(window(nBytes)*nBytes) / max(sum.Seconds(), 1e-9)
	r.add(row)
	return nil
}

// pingPong is half a round trip, as rank a sees it.
func (r *run) pingPong(a, b, nBytes int) (time.Duration, error) {
	p := r.p[:nBytes]
	start := time.Now()
	switch r.g.Rank() {
	case a:
		if err := r.g.Send(r.ctx, b, p); err != nil {
			return 0, err
		}
		if err := r.g.Recv(r.ctx, b, p); err != nil {
			return 0, err
		}
	case b:
		if err := r.g.Recv(r.ctx, a, p); err != nil {
			return 0, err
		}
		if err := r.g.Send(r.ctx, a, p); err != nil {
			return 0, err
		}
	}
	return time.Since(start) / 2, nil
}

// stream sends several messages from a to b and waits for the answer to the
// last.
func (r *run) stream(a, b, nBytes, messages int) (time.Duration, error) {
	p, answer := r.p[:nBytes], make([]byte, 4)
	start := time.Now()
	switch r.g.Rank() {
	case a:
		for range messages {
			if err := r.g.Send(r.ctx, b, p); err != nil {
				return 0, err
			}
		}
		err := r.g.Recv(r.ctx, b, answer)
		return time.Since(start), err
	case b:
		for range messages {
			if err := r.g.Recv(r.ctx, a, p); err != nil {
				return 0, err
			}
		}
		return 0, r.g.Send(r.ctx, a, answer)
	}
	return 0, nil
}
