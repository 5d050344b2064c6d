package rdma

// Which algorithm a collective uses depends on the length of its data as it
// travels, the world size and the topology; all ranks know these, so they agree
// without asking. The choice is made here and nowhere else.
//
// DirectLimit is the length in bytes up to which three or more ranks that are
// all connected all-reduce by direct exchange: every rank sends its whole input
// to every other. Above it they reduce-scatter and all-gather, which moves
// 2(N-1)/N instead of N-1 times the input but takes two rounds. Two ranks always
// exchange directly: it is the same amount in one round.
//
// RelayLimit is the same for a ring or chain: up to it every input is passed on
// until all ranks have it; above it sums are passed on.
//
// ScatterLimit is the length up to which four or more ranks get a broadcast
// straight from its root. Above it each gets a part, and then they all-gather.
//
// BenchmarkAllReduceAlgorithm and BenchmarkBroadcastAlgorithm measure where
// they cross.
const (
	DirectLimit  = 32 << 10
	RelayLimit   = 32 << 10
	ScatterLimit = 256 << 10
)

// algorithm is how a collective moves its data, over whatever topology.
type algorithm uint8

const (
	whole   algorithm = iota // everything goes to every rank
	inParts                  // each rank looks after a part
)

func (g *Group) chooseAllReduce(nBytes int) algorithm {
	limit := DirectLimit
	if g.line != nil {
		limit = RelayLimit
	}
	if nBytes <= limit || g.worldSize == 2 {
		return whole
	}
	return inParts
}

func (g *Group) chooseBroadcast(nBytes int) algorithm {
	if g.line == nil && g.worldSize >= 4 && nBytes > ScatterLimit {
		return inParts
	}
	return whole
}

// Share is the part of n values that a rank looks after in ReduceScatter:
// those from from to to-1. The parts of the ranks follow each other and differ
// by one value at most; some are empty when n is smaller than the world size.
func Share(n, worldSize, rank int) (from, to int) {
	return int(uint64(rank) * uint64(n) / uint64(worldSize)), int(uint64(rank+1) * uint64(n) / uint64(worldSize))
}
