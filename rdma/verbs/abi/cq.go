package abi

import (
	"github.com/ebitengine/purego"

	"daisy/rdma/verbs/provider"
)

// cq is an ibv_cq.
type cq struct {
	c      *context
	handle uintptr // guarded by the context's mutex, but for Poll
	args   [3]uintptr
	wcs    page[[provider.PollBatch]wc]
}

func (c *context) CreateCQ(depth int) (provider.CQ, error) {
	wcs, err := newPage[[provider.PollBatch]wc]()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// No context of ours, no event channel, its vector 0.
	handle, err := c.create(provider.OpCreateCQ, c.l.call.createCQ, c.handle, uintptr(depth), 0, 0, 0)
	if err != nil {
		wcs.free()
		return nil, err
	}
	return &cq{c: c, handle: handle, wcs: wcs, args: [3]uintptr{handle, 0, addr(wcs.v)}}, nil
}

func (q *cq) Poll(wcs []provider.WC) (int, error) {
	if q.handle == 0 {
		return 0, provider.ErrReleased
	}
	q.args[1] = uintptr(min(len(wcs), provider.PollBatch))
	r, _, _ := purego.SyscallN(q.c.poll, q.args[:]...)
	n := int(int32(r))
	if n < 0 {
		return 0, q.c.fail(provider.OpPoll, n)
	}
	for i := range min(n, len(wcs)) {
		w := &q.wcs.v[i]
		wcs[i] = provider.WC{
			ID: w.wrID, Status: provider.WCStatus(w.status), Opcode: provider.Opcode(w.opcode),
			VendorErr: w.vendorErr, Bytes: w.byteLen, QPN: w.qpNum,
		}
	}
	return n, nil
}

func (q *cq) Destroy() error {
	if err := q.c.release(&q.handle, provider.OpDestroyCQ, q.c.l.call.destroyCQ); err != nil {
		return err
	}
	q.wcs.free()
	return nil
}
