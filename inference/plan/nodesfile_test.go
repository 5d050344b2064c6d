package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const desk = `{
	"nodes": [
		{"name": "Studio", "chip": "M4 Max", "memory_gb": 128},
		{"name": "Book", "chip": "Apple M4 Pro", "memory_gb": 24, "leader": true},
		{"name": "mini", "gives_gb": 10, "gigabytes_per_second": 100, "teraflops": 3, "launch_us": 70, "layer_us": 0}
	],
	"link": {"kind": "thunderbolt"},
	"links": [{"between": ["mini", "Studio"], "latency_us": 300, "gigabytes_per_second": 1}, {"between": ["mini", "Book"], "kind": "none"}]
}`

func TestReadNodes(t *testing.T) {
	n, err := ReadNodes(strings.NewReader(desk))
	require.NoError(t, err)
	require.Equal(t, 1, n.Leader)
	require.Equal(t, Node{"Studio", 96 << 30, 546e9 * chipBandwidth, 40 * chipCompute, chipLaunch, chipLayer}, n.Nodes[0])
	require.EqualValues(t, 16<<30, n.Nodes[1].Memory)
	require.InEpsilon(t, 273e9*chipBandwidth, n.Nodes[1].Bandwidth, 1e-12)
	require.Equal(t, Node{"mini", 10 << 30, 100e9, 3e12, 70e-6, 0}, n.Nodes[2])
	require.Equal(t, linkKinds["thunderbolt"], n.Net.link(0, 1))
	require.Equal(t, Link{300e-6, 1e9}, n.Net.link(0, 2))
	require.Equal(t, Link{}, n.Net.link(1, 2))
	require.Len(t, n.Notes, 3)
	require.Contains(t, n.Notes[0], "published, not measured")
}

func TestReadNodesRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                       "EOF",
		`{}`:                                     "0 nodes",
		`{"nodes":[`:                             "unexpected EOF",
		`{"mops": []}`:                           "unknown field",
		`{"nodes":[{"name":"a"}]}`:               "how much memory",
		`{"nodes":[{"name":"a","memory_gb":8}]}`: "how fast",
		`{"nodes":[{"name":"a","chip":"M4","memory_gb":-8}]}`:              "no such quantity",
		`{"nodes":[{"name":"a","chip":"M4","memory_gb":1e300}]}`:           "no such quantity",
		`{"nodes":[{"name":"a","chip":"Z80","memory_gb":8}]}`:              "no figures",
		`{"nodes":[{"chip":"M4","memory_gb":8}]}`:                          "a name of its own",
		`{"nodes":[{"name":"a","chip":"M4","memory_gb":8,"layer_us":-1}]}`: "layer",
		two(``):                                 "how are the nodes linked",
		two(`,"link":{"kind":"string"}`):        "no link of kind",
		two(`,"link":{}`):                       "a link needs",
		two(`,"link":{"latency_us":1e300}`):     "link of",
		two(`,"link":{"between":["a","b"]}`):    "for all nodes",
		two(`,"links":[{"between":["a","c"]}]`): "no two such nodes",
		two(`,"links":[{"between":["a","a"]}]`): "no two such nodes",
		two(`,"links":[{"between":["a"]}]`):     "between two nodes",
		`{"nodes":[{"name":"a","chip":"M4","memory_gb":8,"leader":true},{"name":"b","chip":"M4","memory_gb":8,"leader":true}]}`: "both lead",
		`{"nodes":[{"name":"a","chip":"M4","memory_gb":8},{"name":"a","chip":"M4","memory_gb":8}]}`:                             "a name of its own",
		`{"nodes":[` + strings.Repeat(`{"name":"a"},`, MaxRanks) + `{"name":"a"}]}`:                                             "33 nodes",
		strings.Repeat(" ", MaxNodesFile+1): "more than",
	} {
		_, err := ReadNodes(strings.NewReader(text))
		require.ErrorContains(t, err, want, "%.80s", text)
	}
}

func two(links string) string {
	return `{"nodes":[{"name":"a","chip":"M4","memory_gb":8},{"name":"b","chip":"M4","memory_gb":8}]` + links + `}`
}

// FuzzReadNodes: what is read can be planned for.
func FuzzReadNodes(f *testing.F) {
	f.Add(desk)
	f.Add(two(`,"link":{"kind":"wifi"}`))
	f.Add(`{"nodes":[{"name":"a","gives_gb":1e-300,"gigabytes_per_second":1e-300,"teraflops":1e-300}]}`)
	m := dense(3)
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ReadNodes(strings.NewReader(text))
		if err != nil || len(n.Nodes) > 4 {
			return
		}
		_, err = Choose(m, n.Nodes, n.Net, Usage{Leader: n.Leader}.Defaults(m))
		require.NoError(t, err)
	})
}
