package inference

import (
	"context"
	"fmt"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
)

// A slab is some of a part's bytes, of which a few are on their way at a time, so
// that loading takes little memory beside the shard.
type slab struct {
	part   *part
	lo, hi int64
	packed bool // into memory that reorders rows
}

// slabBytes is the size of a slab where nothing else decides it. Tests make it
// other.
var slabBytes = 4 << 20

const (
	// readBytes is the most that is read at once: cancelling waits for no more.
	readBytes = 1 << 20
	// packedRows is a multiple of the rows that repacked memory mixes.
	packedRows = 8
)

// slabs cuts the part up. In repacked memory rows are mixed by fours or eights, and
// which of the two depends on their number; so there a slab has a multiple of
// eight rows, like the whole, or is the whole.
func (p *part) slabs(packed bool) (out []slab) {
	step := int64(slabBytes)
	if packed {
		row := int64(p.kind.RowBytes(p.shape[0]))
		if step = max(1, step/(packedRows*row)) * packedRows * row; p.shape[1]%packedRows != 0 {
			step = int64(p.bytes)
		}
	}
	for lo := int64(0); lo < int64(p.bytes); lo += step {
		out = append(out, slab{p, lo, min(lo+step, int64(p.bytes)), packed})
	}
	return out
}

// set writes the slab's bytes to their place.
func (s slab) set(data []byte) error {
	if !s.packed || len(data) == s.part.bytes {
		s.part.tensor.Set(data, int(s.lo))
		return nil
	}
	// As a matrix of its own, since only a whole one can be written.
	c, err := ggml.NewContext(1, 0, 0)
	if err != nil {
		return err
	}
	defer c.Close()
	x := c.NewTensor(s.part.kind, s.part.shape[0], len(data)/s.part.kind.RowBytes(s.part.shape[0]))
	if err := s.part.buffer.PlaceAt(x, s.part.offset+int(s.lo)); err != nil {
		return err
	}
	x.Set(data, 0)
	return nil
}

// reader reads slabs, one at a time, into memory that it keeps.
type reader struct {
	file *gguf.File
	slab []byte
	rows []byte // what is read along with bytes that nobody needs
}

// read returns the slab's bytes, which hold until the next call.
func (r *reader) read(ctx context.Context, s slab) ([]byte, error) {
	n := int(s.hi - s.lo)
	if cap(r.slab) < n {
		r.slab = make([]byte, n)
	}
	data := r.slab[:n]
	first := int64(0) // where the piece begins in the part
	for _, c := range s.part.pieces {
		l := c.layout()
		end := first + l.bytes()
		if lo, hi := max(s.lo, first), min(s.hi, end); lo < hi {
			if err := r.readPiece(ctx, c.file, l, lo-first, hi-first, data[lo-s.lo:hi-s.lo]); err != nil {
				return nil, err
			}
			if err := r.file.CheckLocal(c.file.Part); err != nil {
				return nil, fmt.Errorf("tensor %q: %w", c.spec.Name, err)
			}
		}
		first = end
	}
	return data, nil
}

// readPiece fills data with the piece's bytes from lo to hi-1. Spans with little
// between them are read together.
func (r *reader) readPiece(ctx context.Context, t gguf.Tensor, l layout, lo, hi int64, data []byte) error {
	gap := r.file.Gap()
	var batch []span
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		n, err := r.readSpans(ctx, t, batch, data)
		data, batch = data[n:], batch[:0]
		return err
	}
	err := l.each(lo, hi, func(s span) error {
		if n := len(batch); n > 0 {
			last := batch[n-1]
			if s.off-(last.off+last.n) > gap || s.off+s.n-batch[0].off > readBytes {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		batch = append(batch, s)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// readSpans fills the beginning of data with the spans, n bytes.
func (r *reader) readSpans(ctx context.Context, t gguf.Tensor, spans []span, data []byte) (n int64, err error) {
	from := spans[0].off
	if len(spans) == 1 {
		n = spans[0].n
		return n, r.readAt(ctx, t, data[:n], from)
	}
	last := spans[len(spans)-1]
	if r.rows == nil {
		r.rows = make([]byte, readBytes)
	}
	rows := r.rows[:last.off+last.n-from]
	if err := r.readAt(ctx, t, rows, from); err != nil {
		return 0, err
	}
	for _, s := range spans {
		n += int64(copy(data[n:n+s.n], rows[s.off-from:]))
	}
	return n, nil
}

// readAt reads at most readBytes at a time.
func (r *reader) readAt(ctx context.Context, t gguf.Tensor, data []byte, off int64) error {
	for len(data) > 0 {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n := min(len(data), readBytes)
		if err := r.file.ReadTensorAt(t, data[:n], off); err != nil {
			return err
		}
		data, off = data[n:], off+int64(n)
	}
	return nil
}
