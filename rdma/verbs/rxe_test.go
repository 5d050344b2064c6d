package verbs_test

import (
	"os"
	"slices"
	"testing"

	"daisy/rdma"
	"daisy/rdma/transporttest"
	"daisy/rdma/verbs"
	"daisy/rdma/verbs/abi"
	"daisy/rdma/verbs/provider"

	"github.com/stretchr/testify/require"
)

// softRoCE is the system's library where the kernel's soft-RoCE devices rxe0
// and rxe1 face each other: in the virtual machine that make test-rdma-vm
// starts, which says so in DAISY_RXE. There they must be.
func softRoCE(t *testing.T) *verbs.Host {
	must := os.Getenv("DAISY_RXE") != ""
	l, err := abi.Load()
	if err != nil && !must {
		t.Skip("no verbs library, so no soft-RoCE: ", err)
	}
	require.NoError(t, err)
	names, err := l.Devices()
	require.NoError(t, err)
	if !must && !(slices.Contains(names, "rxe0") && slices.Contains(names, "rxe1")) {
		t.Skipf("no devices rxe0 and rxe1 among %q: make test-rdma-vm has them", names)
	}
	require.Subset(t, names, []string{"rxe0", "rxe1"})
	h := verbs.NewHost(l)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// overTheWire lets the lower rank of each pair use rxe0 and the higher rxe1, so
// that all goes through the wire between them.
func overTheWire(h *verbs.Host, worldSize int, kind provider.QPType) desk {
	d := desk{}
	for r := range worldSize {
		o := verbs.Options{Epoch: 7, Require: true, Type: kind, Checksum: kind == provider.UC, Cables: map[int][]string{}}
		for p := range worldSize {
			if p > r {
				o.Cables[p] = []string{"rxe0"}
			} else if p < r {
				o.Cables[p] = []string{"rxe1"}
			}
		}
		d.hosts, d.options = append(d.hosts, h), append(d.options, o)
	}
	return d
}

func TestSoftRoCEConformance(t *testing.T) {
	for _, kind := range []provider.QPType{provider.RC, provider.UC} {
		t.Run(kind.String(), func(t *testing.T) {
			h := softRoCE(t)
			transporttest.Run(t, transporttest.Harness{
				Kind: "verbs",
				Open: func(tb testing.TB, worldSize int) []rdma.Transport {
					return overTheWire(h, worldSize, kind).mustConnect(tb)
				},
				Kill:     kill,
				Worlds:   []int{2, 3, 4},
				MaxBytes: 4 << 20,
				// What happens beside the operations, some times a second, is
				// spread over few of them on an emulated processor.
				Allocations: 0.5,
			})
		})
	}
}
