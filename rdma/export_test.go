package rdma

import "context"

// The two algorithms of AllReduce and Broadcast, whatever the length.

func (g *Group) AllReduceWhole(ctx context.Context, x []float32) error {
	return g.allReduceBy(ctx, whole, F32, x)
}

func (g *Group) AllReduceInParts(ctx context.Context, x []float32) error {
	return g.allReduceBy(ctx, inParts, F32, x)
}

func (g *Group) BroadcastWhole(ctx context.Context, root int, p []byte) error {
	return g.broadcastBy(ctx, whole, root, p)
}

func (g *Group) BroadcastInParts(ctx context.Context, root int, p []byte) error {
	return g.broadcastBy(ctx, inParts, root, p)
}

var (
	ToF16    = toF16
	FromF16  = fromF16
	ToBF16   = toBF16
	FromBF16 = fromBF16
	FindLine = findLine
	AsBytes  = asBytes
)

func (w Wire) Pack(dst []byte, src []float32)   { w.pack(dst, src) }
func (w Wire) Unpack(dst []float32, src []byte) { w.unpack(dst, src) }
func (w Wire) AddTo(dst []float32, src []byte)  { w.addTo(dst, src) }
func (w Wire) Sum(dst []float32, vs [][]byte)   { w.sum(dst, vs) }
