package rdma

// memory is what a collective works in: it is kept for the next one, so that
// only a collective larger than all before it allocates. It belongs to whoever
// has the turn of the collective lane.
type memory struct {
	words []uint64 // aligned for every type of value
	bytes []byte   // the same memory
	used  int
}

// slot is how much take(n) uses: whole cache lines, so that ranks or
// goroutines that work on neighbours do not slow each other down.
func slot(n int) int { return (n + 63) &^ 63 }

// reset frees everything taken so far and makes room for so many bytes, in
// slots.
func (m *memory) reset(total int) {
	m.used = 0
	if total > len(m.bytes) {
		m.words = make([]uint64, (total+7)/8)
		m.bytes = bytesOf(m.words)
	}
}

// take returns memory that nobody else uses until the next reset.
func (m *memory) take(n int) []byte {
	b := m.bytes[m.used:][:n:n]
	m.used += slot(n)
	return b
}
