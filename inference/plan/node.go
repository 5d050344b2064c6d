package plan

import (
	"fmt"
	"math"
)

// Node is what a machine gives and how fast it is. The rates are those that the
// engine reaches, as measured; Chips has published ones for machines that are not
// here.
type Node struct {
	Name      string
	Memory    int64   // bytes it gives to the model
	Bandwidth float64 // bytes of weights that it streams in a second
	Compute   float64 // operations in a second (two for a multiply-add) in prefill
	Launch    float64 // seconds to launch and await one segment
	Layer     float64 // seconds that a layer takes besides streaming its weights
}

// Link is the way between two nodes: a message of n bytes takes
// Latency + n/Bandwidth seconds. A zero Link is none.
type Link struct {
	Latency   float64 // seconds, one way, from program to program
	Bandwidth float64 // bytes a second
}

// Network has the link of each pair of nodes, by index; links are alike both
// ways, so [a][b] counts for a < b.
type Network [][]Link

// Uniform is a network of n nodes whose links are all alike.
func Uniform(n int, l Link) Network {
	net := make(Network, n)
	for i := range net {
		net[i] = make([]Link, n)
		for j := range net[i] {
			net[i][j] = l
		}
	}
	return net
}

func (net Network) link(a, b int) Link { return net[min(a, b)][max(a, b)] }

// seconds is how long a message of n bytes takes.
func (l Link) seconds(n float64) float64 { return l.Latency + n/l.Bandwidth }

// among is the link that ranks which all meet have to wait for.
func (net Network) among(nodes []int) Link {
	worst := Link{Bandwidth: math.Inf(1)}
	for i, a := range nodes {
		for _, b := range nodes[:i] {
			l := net.link(a, b)
			worst.Latency, worst.Bandwidth = max(worst.Latency, l.Latency), min(worst.Bandwidth, l.Bandwidth)
		}
	}
	return worst
}

// unlinked finds two of the nodes that have no link.
func (net Network) unlinked(nodes []int) (a, b int, found bool) {
	for i, a := range nodes {
		for _, b := range nodes[:i] {
			if net.link(a, b).Bandwidth == 0 {
				return min(a, b), max(a, b), true
			}
		}
	}
	return 0, 0, false
}

func (n Node) check() error {
	switch {
	case n.Memory < 0:
		return fmt.Errorf("%s: memory of %d bytes", n.Name, n.Memory)
	case !positive(n.Bandwidth) || !positive(n.Compute):
		return fmt.Errorf("%s: bandwidth %v bytes/s and compute %v operations/s must be positive", n.Name, n.Bandwidth, n.Compute)
	case !(n.Launch >= 0 && n.Layer >= 0 && n.Launch < 3600 && n.Layer < 3600):
		return fmt.Errorf("%s: launch of %v s, layer of %v s", n.Name, n.Launch, n.Layer)
	}
	return nil
}

func (net Network) check(n int) error {
	if len(net) != n {
		return fmt.Errorf("links of %d nodes, there are %d", len(net), n)
	}
	for a := range net {
		if len(net[a]) != n {
			return fmt.Errorf("links of node %d with %d nodes, there are %d", a, len(net[a]), n)
		}
		for b := a + 1; b < n; b++ {
			if l := net[a][b]; l != (Link{}) && (!positive(l.Bandwidth) || !(l.Latency >= 0 && l.Latency < 3600)) {
				return fmt.Errorf("link of nodes %d and %d: latency %v s, bandwidth %v bytes/s", a, b, l.Latency, l.Bandwidth)
			}
		}
	}
	return nil
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
