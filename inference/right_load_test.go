package inference

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"daisy/inference/gguf"
	"daisy/inference/modeltest"
	"daisy/rdma"
	"daisy/rdma/mem"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// peer is a source that counts what is read, and may misbehave.
type peer struct {
	data  *bytes.Reader
	bytes atomic.Int64
	reads atomic.Int64
	at    func(p []byte, off int64) (n int, err error, done bool) // instead of reading, when done
}

func newPeer(t testing.TB, path string) *peer {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return &peer{data: bytes.NewReader(data)}
}

func (s *peer) ReadAt(p []byte, off int64) (int, error) {
	s.reads.Add(1)
	s.bytes.Add(int64(len(p)))
	if s.at != nil {
		if n, err, done := s.at(p, off); done {
			return n, err
		}
	}
	return s.data.ReadAt(p, off)
}

func (s *peer) source(gap int) *gguf.Source {
	return &gguf.Source{Name: "a peer's model", Parts: []gguf.SourcePart{{Reader: s, Size: s.data.Size()}}, Gap: gap}
}

// loadAll loads on as many ranks as there are options; the engines that came are
// closed in the end.
func loadAll(t testing.TB, path string, options []Options) ([]*Engine, []error) {
	t.Helper()
	engines, errs := make([]*Engine, len(options)), make([]error, len(options))
	var g errgroup.Group
	for r, tr := range mem.New(len(options)) {
		g.Go(func() error {
			o := options[r]
			o.Threads, o.Group = 1, rdma.NewGroup(tr, 1)
			engines[r], errs[r] = Load(t.Context(), path, o)
			return nil
		})
	}
	require.NoError(t, g.Wait())
	t.Cleanup(func() {
		for _, e := range engines {
			if e != nil {
				_ = e.Close()
			}
		}
	})
	return engines, errs
}

// What a rank reads beside its shard: the header twice, once with the parser's
// reading ahead, once for the fingerprint, and three times the fingerprint's
// samples.
func besideShard(header int64) int64 { return 2*header + 256<<10 + 3*256<<10 }

// A rank reads its shard from a source and little else, on every plan, and the
// logits have the bits that they have from a local file.
func TestRanksReadOnlyTheirShard(t *testing.T) {
	for _, kind := range []gguf.Type{gguf.F32, gguf.Q4_0} {
		path := tiny(t, modeltest.Options{Type: kind, Layers: 4, Dim: 256, Heads: 8, KVHeads: 4, FFN: 1024})
		f, err := gguf.Open(path)
		require.NoError(t, err)
		header := f.HeaderSize()
		require.NoError(t, f.Close())
		for _, p := range manyPlans(t, path)[:7] {
			t.Run(fmt.Sprint(kind, planName(p)), func(t *testing.T) {
				var options []Options
				var peers []*peer
				var mu sync.Mutex
				told := map[int][2]int64{}
				for r := range p.World() {
					peers = append(peers, newPeer(t, path))
					options = append(options, Options{Plan: &p, Source: peers[r].source(1), Progress: func(loaded, total int64) {
						mu.Lock()
						defer mu.Unlock()
						if loaded < told[r][0] {
							t.Errorf("rank %d: progress from %d back to %d", r, told[r][0], loaded)
						}
						told[r] = [2]int64{loaded, total}
					}})
				}
				engines, errs := loadAll(t, "", options)
				for r, e := range engines {
					require.NoError(t, errs[r])
					shard := e.Info().WeightBytes
					require.Equal(t, [2]int64{shard, shard}, told[r])
					require.GreaterOrEqual(t, peers[r].bytes.Load(), shard)
					require.LessOrEqual(t, peers[r].bytes.Load(), shard+besideShard(header), "rank %d with %d bytes", r, shard)
				}
				followers := &errgroup.Group{}
				for _, e := range engines[1:] {
					followers.Go(func() error { return e.Follow(context.Background()) })
				}
				got := logits(t, engines[0])
				require.NoError(t, engines[0].Close())
				require.NoError(t, followers.Wait())
				require.Equal(t, logits(t, cluster(t, path, p.World(), Options{Plan: &p})[0]), got)
			})
		}
	}
}

// Columns that lie near each other are read together: many fewer reads for some
// bytes more.
func TestNearColumnsAreReadTogether(t *testing.T) {
	path := tiny(t, modeltest.Options{Type: gguf.F16, Layers: 1, Dim: 256, Heads: 8, KVHeads: 4, FFN: 1024})
	count := func(gap int) (nReads, nBytes int64) {
		peers := []*peer{newPeer(t, path), newPeer(t, path)}
		_, errs := loadAll(t, "", []Options{{Source: peers[0].source(gap)}, {Source: peers[1].source(gap)}})
		require.NoError(t, errors.Join(errs...))
		return peers[0].reads.Load(), peers[0].bytes.Load()
	}
	manyReads, few := count(1)
	fewReads, many := count(0)
	require.Greater(t, manyReads, int64(2*256)) // a row each of two matrices
	require.Less(t, fewReads, manyReads/3)
	require.Greater(t, many, few)
	require.Less(t, many, few*3/2)
}

// Slabs of any size give the same weights, in plain and in repacked memory, whole
// and cut, joined and not, of experts too.
func TestSlabs(t *testing.T) {
	defer func(n int) { slabBytes = n }(slabBytes)
	paths := []string{
		tiny(t, modeltest.Options{Type: gguf.Q4_0, Heads: 8, KVHeads: 4, FFN: 256}),
		tiny(t, modeltest.Options{Type: gguf.Q8_0, Heads: 8, KVHeads: 4, FFN: 256}),
		modeltest.Quantise(t, openGolden(t, "qwen3moe").path, gguf.Q4_0, "_exps.weight"),
	}
	tokens := []int32{5, 17, 30, 2, 3, 5, 7, 25, 31, 32}
	for _, path := range paths {
		for world := 1; world <= 2; world++ {
			slabBytes = math.MaxInt32
			want := forward(t, path, tokens, world, 7)
			for _, n := range []int{64, 1000, 4096} {
				slabBytes = n
				require.Equal(t, want, forward(t, path, tokens, world, 7), "%s in %d ranks by %d", path, world, n)
			}
		}
	}
}

// Cancelling ends the loading when the reads under way are done.
func TestCancelledLoading(t *testing.T) {
	path := tiny(t, modeltest.Options{Layers: 4, Dim: 256, FFN: 1024})
	s := newPeer(t, path)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("changed my mind")
	var cancelled, after atomic.Int64
	loading := make(chan struct{})
	s.at = func([]byte, int64) (int, error, bool) {
		select {
		case <-loading:
		default:
			return 0, nil, false
		}
		if cancelled.Load() > 0 {
			after.Add(1)
		} else if s.reads.Load() > 20 {
			cancel(why)
			cancelled.Store(1)
		}
		return 0, nil, false
	}
	begun := sync.OnceFunc(func() { s.reads.Store(0); close(loading) })
	_, err := Load(ctx, "", Options{Threads: 1, Source: s.source(0), Progress: func(int64, int64) { begun() }})
	require.ErrorIs(t, err, why)
	require.Positive(t, cancelled.Load())
	require.Less(t, after.Load(), int64(readers))
}

// What goes wrong with a source on one rank is told on the leader: which rank,
// which tensor, which source.
func TestBrokenSources(t *testing.T) {
	const tensor = "blk.1.ffn_down.weight"
	path := tiny(t, modeltest.Options{Heads: 8, KVHeads: 4, FFN: 256, Layers: 3})
	f, err := gguf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	x, ok := f.Tensor(tensor)
	require.True(t, ok)
	inTensor := func(off int64) bool { return off >= x.Offset && off < x.Offset+x.Bytes() }
	for name, c := range map[string]struct {
		read func(s *peer, p []byte, off int64) (int, error)
		want string
	}{
		"fails":          {func(*peer, []byte, int64) (int, error) { return 0, errors.New("the cable is out") }, "the cable is out"},
		"ends early":     {func(s *peer, p []byte, off int64) (int, error) { return len(p) / 2, io.EOF }, "unexpected EOF"},
		"brings nothing": {func(s *peer, p []byte, off int64) (int, error) { return 0, nil }, "unexpected EOF"},
		"changes": {func(s *peer, p []byte, off int64) (int, error) {
			n, err := s.data.ReadAt(p, off)
			for i := range p {
				p[i] ^= 1
			}
			return n, err
		}, "changed while it was loaded"},
	} {
		t.Run(name, func(t *testing.T) {
			good, bad := newPeer(t, path), newPeer(t, path)
			var loading atomic.Bool
			bad.at = func(p []byte, off int64) (int, error, bool) {
				if !loading.Load() || !inTensor(off) {
					return 0, nil, false
				}
				n, err := c.read(bad, p, off)
				return n, err, true
			}
			_, errs := loadAll(t, "", []Options{{Source: good.source(0)},
				{Source: bad.source(0), Progress: func(int64, int64) { loading.Store(true) }}})
			for _, part := range []string{c.want, tensor, "a peer's model"} {
				require.ErrorContains(t, errs[0], part)
				require.ErrorContains(t, errs[1], part)
			}
			require.ErrorContains(t, errs[0], "rank 1")
		})
	}
}

// A local file that is written to while it is read is found out too.
func TestFileChangesWhileItIsLoaded(t *testing.T) {
	path := tiny(t, modeltest.Options{Heads: 8, KVHeads: 4, FFN: 256})
	grow := sync.OnceFunc(func() {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.Write([]byte{1})
			_ = f.Close()
		}
		if err != nil {
			t.Error(err)
		}
	})
	_, errs := loadAll(t, path, []Options{{Progress: func(int64, int64) { grow() }}, {Progress: func(int64, int64) { grow() }}})
	require.ErrorContains(t, errs[0], "tensor ")
	require.ErrorContains(t, errs[0], path+": changed while it was loaded")
}

// A source of a split model must have all parts.
func TestSourceOfNoParts(t *testing.T) {
	_, err := Load(t.Context(), "", Options{Source: &gguf.Source{Name: "nothing"}})
	require.ErrorContains(t, err, "nothing")
}
