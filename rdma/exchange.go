package rdma

// exchange sends g.outs[r] to every other rank r and receives g.ins[r] from it.
// Short messages all leave before the first is awaited, so that their latencies
// overlap; long ones go step by step, each a send and a receive at once.
func (g *Group) exchange(tag Tag) error {
	if g.worldSize == 2 {
		r := 1 - g.rank
		return g.transport.SendRecv(tag, r, g.outs[r], r, g.ins[r])
	}
	longest := 0
	for step := 1; step < g.worldSize; step++ {
		longest = max(longest, len(g.outs[g.peerAt(step)]))
	}
	if longest > g.transport.EagerLimit() {
		for step := 1; step < g.worldSize; step++ {
			to, from := g.peerAt(step), g.peerAt(g.worldSize-step)
			if err := g.transport.SendRecv(tag, to, g.outs[to], from, g.ins[from]); err != nil {
				return err
			}
		}
		return nil
	}
	for step := 1; step < g.worldSize; step++ {
		to := g.peerAt(step)
		if err := g.transport.Send(to, tag, g.outs[to]); err != nil {
			return err
		}
	}
	for step := 1; step < g.worldSize; step++ {
		from := g.peerAt(g.worldSize - step)
		if err := g.transport.Recv(from, tag, g.ins[from]); err != nil {
			return err
		}
	}
	return nil
}

// peerAt counts the other ranks from this one: step 1 is the next rank, step
// worldSize-1 the one before. At any step every rank sends to one and receives
// from one.
func (g *Group) peerAt(step int) int { return (g.rank + step) % g.worldSize }
