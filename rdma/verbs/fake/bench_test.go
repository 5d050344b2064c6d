package fake_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/fake/cfake"
	"daisy/rdma/verbs/provider"
)

// BenchmarkCalls is what the calls cost from Go, through the loader into the C
// fake: an exchange is two receives and two sends of a slot of 4 KiB, both
// ways, and the polls that complete them.
func BenchmarkCalls(b *testing.B) {
	f, err := cfake.Make(library)
	require.NoError(b, err)
	defer func() { require.NoError(b, f.Close()) }()
	t := &testing.T{}
	require.NoError(b, f.AddDevice(left, fake.Options{}))
	require.NoError(b, f.AddDevice(right, fake.Options{}))
	require.NoError(b, f.Wire(left, right))
	x, y := newSide(t, f, left, usual), newSide(t, f, right, usual)
	x.connect(y.endpoint())
	y.connect(x.endpoint())
	wcs := make([]provider.WC, provider.PollBatch)

	b.Run("exchange/4KiB", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(2 * 4096)
		for b.Loop() {
			for _, s := range []*side{x, y} {
				if err := s.recv(1, high, 4096); err != nil {
					b.Fatal(err)
				}
			}
			for _, s := range []*side{x, y} {
				if err := s.send(2, 0, 4096); err != nil {
					b.Fatal(err)
				}
			}
			for _, s := range []*side{x, y} {
				for n := 0; n < 2; {
					m, err := s.cq.Poll(wcs)
					if err != nil {
						b.Fatal(err)
					}
					n += m
				}
			}
		}
	})
	b.Run("poll/empty", func(b *testing.B) {
		for b.Loop() {
			if n, err := x.cq.Poll(wcs); n != 0 || err != nil {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("copy/4KiB", func(b *testing.B) {
		b.SetBytes(4096)
		for b.Loop() {
			copy(y.mem[high:high+4096], x.mem[:4096])
		}
	})
}
