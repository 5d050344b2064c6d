package verbs

import (
	"net/netip"
	"testing"

	"daisy/rdma/verbs/provider"

	"github.com/stretchr/testify/require"
)

func thunderbolt(device, address string, bits int) portInfo {
	return portInfo{Device: device, Link: provider.LinkThunderbolt, Types: []provider.QPType{provider.UC},
		Address: netip.MustParseAddr(address), Bits: bits}
}

func ethernet(device, address string, types ...provider.QPType) portInfo {
	return portInfo{Device: device, Link: provider.LinkEthernet, Types: types, Address: netip.MustParseAddr(address)}
}

func TestMatch(t *testing.T) {
	uc, rc := provider.UC, provider.RC
	a1, a2 := thunderbolt("rdma_en1", "192.168.0.1", 30), thunderbolt("rdma_en2", "192.168.0.5", 30)
	b1, b2 := thunderbolt("rdma_en5", "192.168.0.6", 30), thunderbolt("rdma_en3", "192.168.0.2", 30)
	own1, own2 := thunderbolt("rdma_en1", "169.254.1.1", 16), thunderbolt("rdma_en2", "169.254.1.2", 16)
	own3, own4 := thunderbolt("rdma_en1", "169.254.7.1", 16), thunderbolt("rdma_en9", "169.254.7.2", 16)
	for _, c := range []struct {
		name  string
		sides []side
		want  []railPlan
		err   string
	}{
		{"one cable", []side{{ports: []portInfo{a1}}, {ports: []portInfo{b1, b2}}}, []railPlan{{0, 1, uc}}, ""},
		{"two cables, crossed", []side{{ports: []portInfo{a1, a2}}, {ports: []portInfo{b1, b2}}},
			[]railPlan{{0, 1, uc}, {1, 0, uc}}, ""},
		{"nothing", []side{{ports: []portInfo{a1}}, {ports: []portInfo{b1}}}, nil, "no port of one side"},
		{"no ports", []side{{}, {ports: []portInfo{b1}}}, nil, "no port of one side"},
		{"self-assigned addresses, one port each", []side{{ports: []portInfo{own1}}, {ports: []portInfo{own3}}},
			[]railPlan{{0, 0, uc}}, ""},
		{"self-assigned addresses, two cables", []side{{ports: []portInfo{own1, own2}}, {ports: []portInfo{own3, own4}}},
			nil, "name the cables"},
		{"two cables with names", []side{
			{ports: []portInfo{own1, own2}, cables: map[int][]string{1: {"rdma_en2", "rdma_en1"}}},
			{ports: []portInfo{own3, own4}, cables: map[int][]string{0: {"rdma_en1", "rdma_en9"}}}},
			[]railPlan{{1, 0, uc}, {0, 1, uc}}, ""},
		{"one of two named cables is out", []side{
			{ports: []portInfo{own2}, cables: map[int][]string{1: {"rdma_en1", "rdma_en2"}}},
			{ports: []portInfo{own3, own4}, cables: map[int][]string{0: {"rdma_en1", "rdma_en9"}}}},
			[]railPlan{{0, 1, uc}}, ""},
		{"names that do not fit", []side{
			{ports: []portInfo{own1}, cables: map[int][]string{1: {"rdma_en1"}}},
			{ports: []portInfo{own3, own4}, cables: map[int][]string{0: {"rdma_en1", "rdma_en9"}}}},
			nil, "one side names 1 cables, the other 2"},
		{"a name on one side decides", []side{
			{ports: []portInfo{own1, own2}, cables: map[int][]string{1: {"rdma_en2"}}}, {ports: []portInfo{own3}}},
			[]railPlan{{1, 0, uc}}, ""},
		{"a third rank makes it unclear", []side{{ports: []portInfo{own1}}, {ports: []portInfo{own3}}, {ports: []portInfo{own4}}},
			nil, "name the cables"},
		{"a third rank's cable is named", []side{{ports: []portInfo{own1}}, {ports: []portInfo{own3}},
			{ports: []portInfo{own4}, cables: map[int][]string{7: {"rdma_en9"}}}}, []railPlan{{0, 0, uc}}, ""},
		{"a switch joins all", []side{{ports: []portInfo{ethernet("mlx0", "10.0.0.1", rc, uc)}},
			{ports: []portInfo{ethernet("mlx0", "10.0.0.2", uc)}}, {ports: []portInfo{ethernet("mlx0", "10.0.0.3", rc, uc)}}},
			[]railPlan{{0, 0, uc}}, ""},
		{"one device for two ranks of one machine", []side{{ports: []portInfo{ethernet("rxe0", "10.0.0.1", rc, uc)}},
			{ports: []portInfo{ethernet("rxe0", "10.0.0.1", rc, uc)}}}, []railPlan{{0, 0, rc}}, ""},
		{"two ranks of one Mac", []side{{ports: []portInfo{a1, a2}}, {ports: []portInfo{a1, a2}}}, nil, "no port of one side"},
		{"two ranks of one Mac, with a cable from port to port", []side{{ports: []portInfo{own1, own2}}, {ports: []portInfo{own1, own2}}},
			[]railPlan{{0, 1, uc}, {1, 0, uc}}, ""},
		{"nothing in common", []side{{ports: []portInfo{ethernet("a", "10.0.0.1", rc)}},
			{ports: []portInfo{ethernet("b", "10.0.0.2", uc)}}}, nil, "no kind of queue pair in common"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := match(c.sides, 0, 1)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// FuzzHello takes a peer's bytes through all that is done with them.
func FuzzHello(f *testing.F) {
	ours := hello{Version: version, Epoch: 7, Shapes: shapes,
		Ports: []portInfo{thunderbolt("rdma_en1", "192.168.0.1", 30), ethernet("rxe0", "10.0.0.1", provider.RC)}}
	for _, h := range []hello{ours, {Version: version, Epoch: 7, Shapes: shapes, Cables: map[int][]string{0: {"rdma_en1"}},
		Ports: []portInfo{thunderbolt("rdma_en1", "192.168.0.2", 30)}}} {
		b, err := encode(h)
		require.NoError(f, err)
		f.Add(b[:600])
	}
	f.Add([]byte{255, 255, 255, 255, '{'})
	f.Add([]byte{2, 0, 0, 0, '{', '}'})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h hello
		if decode(b, &h) != nil || ours.check(h) != nil {
			return
		}
		for _, sides := range [][]side{
			{{ports: ours.Ports}, {ports: h.Ports, cables: h.Cables}},
			{{ports: ours.Ports, cables: map[int][]string{1: {"rdma_en1"}}}, {ports: h.Ports, cables: h.Cables}},
		} {
			plans, err := match(sides, 0, 1)
			if err != nil {
				continue
			}
			require.NotEmpty(t, plans)
			require.LessOrEqual(t, len(plans), maxRails)
			for _, p := range plans {
				require.Less(t, p.low, len(ours.Ports))
				require.Less(t, p.high, len(h.Ports))
			}
		}
		_, err := encode(h)
		_ = err // it may be longer than what came, since names are escaped
	})
}
