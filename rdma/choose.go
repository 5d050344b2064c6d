package rdma

// Which algorithm a collective uses depends on the length of its data as it
// travels, the world size, the topology and the kind of transport; all ranks
// know these, so they agree without asking. The choice is made here and nowhere
// else. BenchmarkAlgorithm measures where the algorithms cross.
const (
	// WholeLimit is the length in bytes up to which three or more ranks
	// all-reduce by sending their whole inputs to everybody, unless the
	// transport says otherwise. Where all are connected that takes one round
	// and N-1 times the input; above the limit they reduce-scatter and
	// all-gather, which takes two rounds and 2(N-1)/N times the input.
	// On a ring or chain it is the same choice with everything passed on.
	//
	// Over loopback TCP they cross between 32 and 64 KiB for three, four and
	// eight ranks, on a chain at 64 or 128 KiB.
	WholeLimit = 32 << 10

	// PairLimit is the same for two ranks, for which both ways take the same
	// bytes: in parts is one round more, and each rank sums half of the values.
	PairLimit = 1 << 20

	// ScatterLimit is the length up to which four or more ranks get a broadcast
	// straight from its root. Above it each gets a part from the root, and then
	// they all-gather. Over loopback TCP they cross at about 1 MiB, as rank 0
	// sees it.
	ScatterLimit = 1 << 20
)

// A Tuned transport has a WholeLimit of its own, because a message costs it much
// more or less than it costs TCP, compared with the bytes in it. It is the same
// on all ranks.
type Tuned interface{ WholeLimit() int }

// WholeLimitOf is the limit that groups over t use.
func WholeLimitOf(t Transport) int {
	if t, ok := t.(Tuned); ok {
		return t.WholeLimit()
	}
	return WholeLimit
}

// algorithm is how a collective moves its data, over whatever topology.
type algorithm uint8

const (
	whole   algorithm = iota // everything goes to every rank
	inParts                  // each rank looks after a part
)

func (g *Group) chooseAllReduce(nBytes int) algorithm {
	limit := g.wholeLimit
	if g.worldSize == 2 {
		limit = PairLimit
	}
	if nBytes <= limit {
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
