package rdma

import "context"

// DirectLimit is the length in bytes up to which three or more ranks all-reduce
// by direct exchange: every rank sends its whole input to every other. Above
// it they reduce-scatter and all-gather, which moves 2(N-1)/N instead of N-1
// times the input but takes two rounds. Two ranks always exchange directly.
//
// BenchmarkAllReduceAlgorithm measures where the two cross: between 32 and
// 64 KiB for three, four and eight ranks over loopback TCP.
const DirectLimit = 32 << 10

// AllReduce replaces x, on every rank, by the sum of all ranks' x. All ranks
// give the same length. The sum is formed in rank order, whichever algorithm
// runs, so equal inputs give equal bits everywhere and every time.
func (g *Group) AllReduce(ctx context.Context, x []float32) error {
	tag, err := g.begin(ctx, OpAllReduce, 0, 4*len(x))
	if err != nil {
		return err
	}
	switch {
	case g.worldSize == 1:
	case g.worldSize == 2 || 4*len(x) <= DirectLimit:
		err = g.allReduceDirect(tag, x)
	default:
		err = g.allReduceScattered(tag, x)
	}
	return g.end(OpAllReduce, err)
}

func (g *Group) allReduceDirect(tag Tag, x []float32) error {
	n := len(x)
	others := g.scratchFor((g.worldSize - 1) * n)
	mine := asBytes(x)
	err := g.exchange(tag, func(int) []byte { return mine }, func(from int) []byte {
		return asBytes(others[g.slot(from)*n:][:n])
	})
	if err != nil {
		return err
	}
	addInRankOrder(g.rank, x, others)
	return nil
}

// allReduceScattered makes rank r responsible for the r-th of nearly equal
// parts of x.
func (g *Group) allReduceScattered(tag Tag, x []float32) error {
	part := func(r int) []float32 {
		n := uint64(len(x))
		w := uint64(g.worldSize)
		return x[uint64(r)*n/w : uint64(r+1)*n/w]
	}
	mine := part(g.rank)
	n := len(mine)
	others := g.scratchFor((g.worldSize - 1) * n)
	err := g.exchange(tag, func(to int) []byte { return asBytes(part(to)) }, func(from int) []byte {
		return asBytes(others[g.slot(from)*n:][:n])
	})
	if err != nil {
		return err
	}
	addInRankOrder(g.rank, mine, others)
	return g.exchange(tag, func(int) []byte { return asBytes(mine) }, func(from int) []byte {
		return asBytes(part(from))
	})
}

// slot is a peer's place among the other ranks.
func (g *Group) slot(r int) int {
	if r > g.rank {
		return r - 1
	}
	return r
}

// exchange sends one message to every other rank and receives one from each.
// Short messages all leave before the first is awaited, so that their latencies
// overlap; long ones go step by step, each a send and a receive at once.
func (g *Group) exchange(tag Tag, out, in func(r int) []byte) error {
	if g.worldSize == 2 {
		r := 1 - g.rank
		return g.transport.SendRecv(tag, r, out(r), r, in(r))
	}
	longest := 0
	for step := 1; step < g.worldSize; step++ {
		longest = max(longest, len(out(g.peerAt(step))))
	}
	if longest > g.transport.EagerLimit() {
		for step := 1; step < g.worldSize; step++ {
			to, from := g.peerAt(step), g.peerAt(g.worldSize-step)
			if err := g.transport.SendRecv(tag, to, out(to), from, in(from)); err != nil {
				return err
			}
		}
		return nil
	}
	for step := 1; step < g.worldSize; step++ {
		to := g.peerAt(step)
		if err := g.transport.Send(to, tag, out(to)); err != nil {
			return err
		}
	}
	for step := 1; step < g.worldSize; step++ {
		from := g.peerAt(g.worldSize - step)
		if err := g.transport.Recv(from, tag, in(from)); err != nil {
			return err
		}
	}
	return nil
}
