package rdma

import "time"

// A Link describes the data path from this rank to one other.
type Link struct {
	// Peer is the other rank.
	Peer int
	// Kind is what carries the data: "mem", "tcp", "tcp+tls", "verbs". In one
	// group it may differ from peer to peer.
	Kind string
	// Device is the local device or interface, such as "rdma_en2"; empty where
	// there is none or it is not known.
	Device string
	// Latency is half a round trip of an empty message, 0 when not measured.
	Latency time.Duration
	// Bandwidth is in bytes per second one way, 0 when not measured.
	Bandwidth float64
	// Reason is why a faster kind of link, which was tried, is not used: a
	// sentence for people, empty when there is nothing to say.
	Reason string
}

// A Linker is a Transport that can say more about its links than Kind.
type Linker interface {
	// Links describes the links to all other ranks, by rank. It does not block
	// or measure: the figures are those of the probe that chose the link. The
	// slice belongs to the caller.
	Links() []Link
}

// Links describes the data path to every other rank, by rank; nobody is asked
// and nothing is measured for it. The slice belongs to the caller.
func (g *Group) Links() []Link {
	if l, ok := g.transport.(Linker); ok {
		return l.Links()
	}
	links := make([]Link, 0, g.worldSize-1)
	for r := range g.worldSize {
		if r != g.rank {
			links = append(links, Link{Peer: r, Kind: g.transport.Kind()})
		}
	}
	return links
}
