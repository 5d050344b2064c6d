package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MaxNodesFile bounds the file that ReadNodes reads.
const MaxNodesFile = 1 << 20

// nodesFile is the form of a file that describes Macs; docs/plans.md explains it.
type nodesFile struct {
	Nodes []fileNode `json:"nodes"`
	Link  *fileLink  `json:"link"`  // of all pairs
	Links []fileLink `json:"links"` // of those between two
}

type fileNode struct {
	Name      string   `json:"name"`
	Chip      string   `json:"chip"`
	Memory    float64  `json:"memory_gb"` // as the Mac is sold, in GiB
	Gives     float64  `json:"gives_gb"`  // of it, in GiB
	Bandwidth float64  `json:"gigabytes_per_second"`
	Compute   float64  `json:"teraflops"`
	Launch    *float64 `json:"launch_us"`
	Layer     *float64 `json:"layer_us"`
	Leader    bool     `json:"leader"`
}

type fileLink struct {
	Between   []string `json:"between"`
	Kind      string   `json:"kind"`
	Latency   float64  `json:"latency_us"`
	Bandwidth float64  `json:"gigabytes_per_second"`
}

// linkKinds are typical links, as others report them; none was measured here.
var linkKinds = map[string]Link{
	"rdma":        {25e-6, 8e9},     // Thunderbolt 5 with RDMA: row exchange in 26 to 28 µs, 7.4 to 9.1 GB/s
	"thunderbolt": {250e-6, 6.5e9},  // Thunderbolt 5 with TCP: round trip of 0.5 ms, 52 to 63 Gbit/s
	"10gbe":       {100e-6, 1.15e9}, // 10 gigabit Ethernet
	"ethernet":    {200e-6, 0.115e9},
	"wifi":        {3e-3, 0.06e9},
}

// Nodes are the machines and links that a file describes.
type Nodes struct {
	Nodes  []Node
	Net    Network
	Leader int // -1: any may lead
	// Notes say, for people, which figures are not measured.
	Notes []string
}

// ReadNodes reads a description of Macs in JSON, at most MaxNodesFile bytes. What a
// node does not say is taken from its chip.
func ReadNodes(r io.Reader) (*Nodes, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxNodesFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxNodesFile {
		return nil, fmt.Errorf("more than %d bytes", MaxNodesFile)
	}
	var f nodesFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if n := len(f.Nodes); n < 1 || n > MaxRanks {
		return nil, fmt.Errorf("%d nodes, 1 to %d are possible", n, MaxRanks)
	}
	out := &Nodes{Leader: -1}
	places := map[string]int{}
	for i, x := range f.Nodes {
		n, note, err := x.node()
		if err != nil {
			return nil, err
		}
		if _, twice := places[n.Name]; twice || n.Name == "" {
			return nil, fmt.Errorf("node %d: each needs a name of its own, not %q", i+1, n.Name)
		}
		places[n.Name] = i
		if x.Leader && out.Leader >= 0 {
			return nil, fmt.Errorf("%s and %s both lead", out.Nodes[out.Leader].Name, n.Name)
		}
		if x.Leader {
			out.Leader = i
		}
		out.Nodes = append(out.Nodes, n)
		if note != "" && !slices.Contains(out.Notes, note) {
			out.Notes = append(out.Notes, note)
		}
	}
	return out, out.connect(f, places)
}

// node fills in from the chip what the file does not say; note tells people so.
func (x fileNode) node() (n Node, note string, err error) {
	for _, v := range []float64{x.Memory, x.Gives, x.Bandwidth, x.Compute} {
		if !(v >= 0 && v <= 1e9) {
			return n, "", fmt.Errorf("%s: %v is no such quantity", x.Name, v)
		}
	}
	c, known := ChipNamed(x.Chip)
	if x.Chip != "" && !known {
		return n, "", fmt.Errorf("%s: no figures for the chip %q, there are some for %v", x.Name, x.Chip, ChipNames())
	}
	n = c.Node(x.Name, int64(x.Memory*(1<<30)))
	if x.Gives > 0 {
		n.Memory = int64(x.Gives * (1 << 30))
	}
	if x.Bandwidth > 0 {
		n.Bandwidth = x.Bandwidth * 1e9
	} else if known {
		note = fmt.Sprintf("%s: memory bandwidth of %.0f GB/s is published, not measured, and %.0f%% of it is counted", c.Name, c.Bandwidth/1e9, 100*chipBandwidth)
	}
	if x.Compute > 0 {
		n.Compute = x.Compute * 1e12
	} else if known {
		if note != "" {
			note += "; compute is estimated"
		} else {
			note = fmt.Sprintf("%s: compute is estimated, not measured", c.Name)
		}
	}
	if x.Launch != nil {
		n.Launch = *x.Launch * 1e-6
	}
	if x.Layer != nil {
		n.Layer = *x.Layer * 1e-6
	}
	if n.Memory <= 0 {
		return n, "", fmt.Errorf("%s: how much memory? memory_gb or gives_gb says", x.Name)
	}
	if n.Bandwidth <= 0 || n.Compute <= 0 {
		return n, "", fmt.Errorf("%s: how fast? chip says, or gigabytes_per_second and teraflops", x.Name)
	}
	return n, note, n.check()
}

// connect fills in the links.
func (n *Nodes) connect(f nodesFile, places map[string]int) error {
	n.Net = Uniform(len(n.Nodes), Link{})
	if f.Link == nil && len(f.Links) == 0 && len(n.Nodes) > 1 {
		return errors.New("how are the nodes linked? link says it for all, links for pairs")
	}
	if f.Link != nil {
		if len(f.Link.Between) != 0 {
			return errors.New("link is for all nodes; those between two belong into links")
		}
		l, err := f.Link.link()
		if err != nil {
			return err
		}
		n.Net = Uniform(len(n.Nodes), l)
		if f.Link.Kind != "" {
			n.Notes = append(n.Notes, fmt.Sprintf("links of kind %s: a typical %.0f µs and %.2f GB/s, not measured", f.Link.Kind, l.Latency*1e6, l.Bandwidth/1e9))
		}
	}
	for _, x := range f.Links {
		if len(x.Between) != 2 {
			return fmt.Errorf("a link is between two nodes, not %d", len(x.Between))
		}
		a, ok := places[x.Between[0]]
		b, ok2 := places[x.Between[1]]
		if !ok || !ok2 || a == b {
			return fmt.Errorf("a link between %q and %q: no two such nodes", x.Between[0], x.Between[1])
		}
		l, err := x.link()
		if err != nil {
			return err
		}
		n.Net[a][b], n.Net[b][a] = l, l
	}
	return n.Net.check(len(n.Nodes))
}

func (x fileLink) link() (Link, error) {
	if x.Kind == "none" {
		return Link{}, nil
	}
	l, known := linkKinds[x.Kind]
	if x.Kind != "" && !known {
		return l, fmt.Errorf("no link of kind %q: there are rdma, thunderbolt, 10gbe, ethernet, wifi and none", x.Kind)
	}
	if !(x.Latency >= 0 && x.Latency < 1e9) || !(x.Bandwidth >= 0 && x.Bandwidth < 1e9) {
		return l, fmt.Errorf("link of %v µs and %v GB/s", x.Latency, x.Bandwidth)
	}
	if x.Latency > 0 {
		l.Latency = x.Latency * 1e-6
	}
	if x.Bandwidth > 0 {
		l.Bandwidth = x.Bandwidth * 1e9
	}
	if l.Latency <= 0 || l.Bandwidth <= 0 {
		return l, errors.New("a link needs latency_us and gigabytes_per_second, or a kind")
	}
	return l, nil
}
