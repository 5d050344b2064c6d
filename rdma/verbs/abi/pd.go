package abi

import (
	"fmt"
	"unsafe"

	"daisy/rdma/verbs/provider"
)

// pd is an ibv_pd; the context's mutex guards its handle.
type pd struct {
	c      *context
	handle uintptr
}

// mr is an ibv_mr.
type mr struct {
	c      *context
	handle uintptr
	lkey   uint32
}

func (p *pd) RegMR(mem []byte, access provider.Access) (provider.MR, error) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if p.handle == 0 {
		return nil, provider.ErrReleased
	}
	handle, err := p.c.create(provider.OpRegMR, p.c.l.call.regMR,
		p.handle, uintptr(unsafe.Pointer(unsafe.SliceData(mem))), uintptr(len(mem)), uintptr(access))
	if err != nil {
		return nil, err
	}
	return &mr{c: p.c, handle: handle, lkey: at[uint32](handle, mrLKey)}, nil
}

func (p *pd) CreateQP(init provider.QPInit) (provider.QP, error) {
	send, ok1 := init.SendCQ.(*cq)
	recv, ok2 := init.RecvCQ.(*cq)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("verbs: a queue pair needs completion queues of this library: %w", provider.ErrInvalid)
	}
	q, err := newQP(p.c, init.Type)
	if err != nil {
		return nil, err
	}
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if p.handle == 0 || send.handle == 0 || recv.handle == 0 {
		q.free()
		return nil, provider.ErrReleased
	}
	a := &p.c.scratch.v.init
	*a = qpInitAttr{sendCQ: send.handle, recvCQ: recv.handle, qpType: uint32(init.Type), cap: qpCap{
		maxSendWR: init.Cap.MaxSendWR, maxRecvWR: init.Cap.MaxRecvWR,
		maxSendSGE: init.Cap.MaxSendSGE, maxRecvSGE: init.Cap.MaxRecvSGE,
		maxInlineData: init.Cap.MaxInlineBytes,
	}}
	handle, err := p.c.create(provider.OpCreateQP, p.c.l.call.createQP, p.handle, addr(a))
	if err != nil {
		q.free()
		return nil, err
	}
	q.open(handle)
	return q, nil
}

func (p *pd) Dealloc() error {
	return p.c.release(&p.handle, provider.OpDeallocPD, p.c.l.call.deallocPD)
}

func (m *mr) LKey() uint32 { return m.lkey }

func (m *mr) Dereg() error {
	return m.c.release(&m.handle, provider.OpDeregMR, m.c.l.call.deregMR)
}

// release gives a handle back to the library and forgets it if that succeeds.
func (c *context) release(handle *uintptr, op provider.Op, fn uintptr) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *handle == 0 {
		return provider.ErrReleased
	}
	if err := c.control(op, fn, *handle); err != nil {
		return err
	}
	*handle = 0
	return nil
}
