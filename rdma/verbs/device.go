package verbs

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"daisy/rdma/verbs/provider"
)

// port is the only port of Apple's devices, and the one used of others.
const port = 1

// A device is an open RDMA device with its protection domain and registered
// memory. All three are kept until the host closes: only queue pairs come and
// go.
type device struct {
	name string
	link provider.LinkLayer
	ctx  provider.Context

	mu    sync.Mutex // guards the following and serialises control calls
	pd    provider.PD
	slabs []*slab
	// frames is how many frames its rails may have outstanding each way.
	frames int

	// stuckMu guards the following; it is never held during a call.
	stuckMu   sync.Mutex
	stuck     error         // a call has not returned in time: use the device no more
	calls     int           // that have not returned
	abandoned []*rail       // to be freed when they do
	returned  chan struct{} // closed then; nil when no call is stuck
}

// usable tells why the device must not be used any more.
func (d *device) usable() error {
	d.stuckMu.Lock()
	defer d.stuckMu.Unlock()
	return d.stuck
}

// giveUp says that a call has not returned in time. cleanUp follows when it does.
func (d *device) giveUp(why error) error {
	d.stuckMu.Lock()
	defer d.stuckMu.Unlock()
	if d.stuck == nil {
		d.stuck = fmt.Errorf("%s: %w", d.name, why)
	}
	if d.calls++; d.returned == nil {
		d.returned = make(chan struct{})
	}
	return d.stuck
}

// cleanUp frees what rails left behind while the device was stuck. It runs when
// a call has come back after all; the last one does the work.
func (d *device) cleanUp() {
	d.stuckMu.Lock()
	d.calls--
	for d.calls == 0 && len(d.abandoned) > 0 {
		rails := d.abandoned
		d.abandoned = nil
		d.stuckMu.Unlock()
		for _, r := range rails {
			_ = r.release() // nobody is left to be told
		}
		d.stuckMu.Lock()
	}
	if d.calls == 0 {
		close(d.returned)
		d.returned = nil
	}
	d.stuckMu.Unlock()
}

// abandon keeps a rail of a stuck device for cleanUp. It reports false when the
// device is not stuck: then the caller frees it.
func (d *device) abandon(r *rail) bool {
	d.stuckMu.Lock()
	defer d.stuckMu.Unlock()
	if d.returned == nil {
		return false
	}
	d.abandoned = append(d.abandoned, r)
	return true
}

// domain returns the protection domain, which the first rail makes.
func (d *device) domain() (provider.PD, error) {
	if d.pd == nil {
		pd, err := d.ctx.AllocPD()
		if err != nil {
			return nil, err
		}
		d.pd = pd
	}
	return d.pd, nil
}

// take returns registered memory, from a new slab if there is not enough. The
// caller holds mu.
func (d *device) take(n int) (region, error) {
	for _, s := range d.slabs {
		if r, ok := s.take(n); ok {
			return r, nil
		}
	}
	pd, err := d.domain()
	if err != nil {
		return region{}, err
	}
	s, err := newSlab(pd, n)
	if err != nil {
		return region{}, err
	}
	d.slabs = append(d.slabs, s)
	r, _ := s.take(n)
	return r, nil
}

// reserve makes room in one slab for all rails that the device is about to get.
func (d *device) reserve(n int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.take(n)
	if err == nil {
		r.slab.give(r)
	}
	return err
}

// close frees everything, in the documented order: memory, then the domain,
// then the context. There are no rails any more.
func (d *device) close(patience time.Duration) error {
	d.stuckMu.Lock()
	returned := d.returned
	d.stuckMu.Unlock()
	if returned != nil {
		select {
		case <-returned:
		case <-time.After(patience):
			return d.usable()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, s := range d.slabs {
		errs = append(errs, s.free())
	}
	d.slabs = nil
	if d.pd != nil {
		errs = append(errs, d.pd.Dealloc())
		d.pd = nil
	}
	return errors.Join(append(errs, d.ctx.Close())...)
}
