package verbs

import (
	"fmt"
	"slices"

	"daisy/rdma/verbs/provider"
)

// A slab is one piece of registered memory. It lives as long as its device is
// open; rails take regions of it and give them back.
type slab struct {
	mem []byte
	mr  provider.MR
	// used holds the regions in use, by address.
	used []region
}

type region struct {
	slab       *slab
	start, end int
}

func (r region) bytes() []byte { return r.slab.mem[r.start:r.end:r.end] }

// take finds room for n bytes, a multiple of the frame.
func (s *slab) take(n int) (region, bool) {
	at := 0
	for i, u := range s.used {
		if u.start-at >= n {
			r := region{s, at, at + n}
			s.used = slices.Insert(s.used, i, r)
			return r, true
		}
		at = u.end
	}
	if len(s.mem)-at < n {
		return region{}, false
	}
	r := region{s, at, at + n}
	s.used = append(s.used, r)
	return r, true
}

func (s *slab) give(r region) {
	s.used = slices.DeleteFunc(s.used, func(u region) bool { return u == r })
}

// newSlab maps and registers memory.
func newSlab(pd provider.PD, nBytes int) (*slab, error) {
	mem, err := provider.NewSlab(nBytes)
	if err != nil {
		return nil, err
	}
	mr, err := pd.RegMR(mem, provider.MRAccess)
	if err != nil {
		var second error
		if mr, second = pd.RegMR(mem, provider.MRAccessFallback); second != nil {
			_ = provider.FreeSlab(mem) // the failure to register is what counts
			return nil, fmt.Errorf("%w; with local write alone: %w", err, second)
		}
	}
	return &slab{mem: mem, mr: mr}, nil
}

func (s *slab) free() error {
	if err := s.mr.Dereg(); err != nil {
		return err // the device may still use the memory: keep it mapped
	}
	return provider.FreeSlab(s.mem)
}
