package rdma

// A Topology is a Transport in which not every pair of ranks has a direct data
// path, as in a chain of machines 0-1-2 with a cable between neighbours. Without
// it all pairs count as direct.
//
// Collectives avoid the other pairs where a ring or an open chain of direct
// ones joins all ranks. So every rank must give the same answers for the whole
// matrix, and they must not change while the group lives. They come from the
// handshake: each rank tells all others which peers it can reach directly, and
// a pair is direct when both of its ends say so.
//
// The transport still carries messages between all pairs, some of them by a
// slower way: Group.Send and Group.Recv use it as they are told, and so do
// collectives where there is neither a ring nor a chain.
type Topology interface {
	// Direct reports whether a and b, two different ranks, have a direct data
	// path. Direct(a, b) is Direct(b, a).
	Direct(a, b int) bool
}
