package rdma

import "fmt"

// Subset is the group of some of g's ranks, in the order given, over the same
// connections: rank i of it is ranks[i] of g, which must be this process's for
// some i. Each rank named makes the same call. Messages of both groups share the
// order of their pairs, so all of the named ranks must start their operations on
// the two groups in one order. The end of g ends the subset and the other way
// round; Close of the subset frees what it holds and leaves g as it is.
func (g *Group) Subset(ranks []int) (*Group, error) {
	s := &subset{base: g.transport, ranks: ranks, rank: -1}
	seen := map[int]bool{}
	for i, r := range ranks {
		if r < 0 || r >= g.worldSize || seen[r] {
			return nil, fmt.Errorf("subset of a group of %d: rank %d is out of range or twice there", g.worldSize, r)
		}
		seen[r] = true
		if r == g.rank {
			s.rank = i
		}
	}
	if s.rank < 0 {
		return nil, fmt.Errorf("subset of a group of %d: this rank %d is not in it", g.worldSize, g.rank)
	}
	if t, ok := g.transport.(Topology); ok {
		return NewGroup(&directSubset{s, t}, g.epoch), nil
	}
	return NewGroup(s, g.epoch), nil
}

// subset is a transport for some ranks of another.
type subset struct {
	base  Transport
	ranks []int
	rank  int
}

func (s *subset) Kind() string          { return s.base.Kind() }
func (s *subset) Rank() int             { return s.rank }
func (s *subset) WorldSize() int        { return len(s.ranks) }
func (s *subset) EagerLimit() int       { return s.base.EagerLimit() }
func (s *subset) Abort(cause error)     { s.base.Abort(cause) }
func (s *subset) Done() <-chan struct{} { return s.base.Done() }
func (s *subset) Err() error            { return s.base.Err() }
func (s *subset) Close() error          { return nil }

func (s *subset) Send(to int, tag Tag, p []byte) error { return s.base.Send(s.ranks[to], tag, p) }

func (s *subset) Recv(from int, tag Tag, p []byte) error { return s.base.Recv(s.ranks[from], tag, p) }

func (s *subset) SendRecv(tag Tag, to int, out []byte, from int, in []byte) error {
	return s.base.SendRecv(tag, s.ranks[to], out, s.ranks[from], in)
}

// directSubset is a subset of a transport with a topology.
type directSubset struct {
	*subset
	topology Topology
}

func (s *directSubset) Direct(a, b int) bool { return s.topology.Direct(s.ranks[a], s.ranks[b]) }
