package fake

import (
	"fmt"
	"os"
	"unsafe"

	"daisy/rdma/verbs/provider"
)

type pd struct {
	c        *context
	children int
	steps    int  // orders registrations and steps to ready-to-receive
	poisoned bool // a queue pair was moved to ERR: no unmap succeeds any more
	released bool
}

type mr struct {
	pd       *pd
	mem      []byte
	key      uint32
	since    int
	released bool
}

func (p *pd) RegMR(mem []byte, access provider.Access) (provider.MR, error) {
	e := p.c.enter(CallRegMR)
	defer p.c.m.mu.Unlock()
	port := p.c.port
	start := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	switch {
	case p.released:
		return nil, provider.ErrReleased
	case e != 0:
		return nil, port.fail(provider.OpRegMR, e)
	case len(mem) == 0 || start%uintptr(os.Getpagesize()) != 0 || access&provider.AccessLocalWrite == 0,
		// The real provider takes it, and then receives 4 GiB too low.
		provider.CrossesBoundary(start, len(mem)):
		return nil, port.fail(provider.OpRegMR, eInvalid)
	case port.nMR == provider.AppleMaxMR:
		return nil, port.fail(provider.OpRegMR, eNoMem)
	}
	port.nMR++
	p.children++
	p.steps++
	p.c.keys++
	r := &mr{pd: p, mem: mem, key: p.c.keys, since: p.steps}
	p.c.mrs[r.key] = r
	return r, nil
}

func (r *mr) LKey() uint32 { return r.key }

func (r *mr) Dereg() error {
	p := r.pd
	e := p.c.enter(CallDeregMR)
	defer p.c.m.mu.Unlock()
	switch {
	case r.released:
		return provider.ErrReleased
	case e != 0:
		return p.c.port.fail(provider.OpDeregMR, e)
	case p.poisoned:
		return p.c.port.fail(provider.OpDeregMR, eInvalid)
	}
	r.released = true
	delete(p.c.mrs, r.key)
	p.c.port.nMR--
	p.children--
	return nil
}

// bytes is the memory of a slot, or nil if a queue pair may not use it.
func (q *qp) bytes(s provider.Slot) []byte {
	r := q.pd.c.mrs[s.LKey]
	if r == nil || r.pd != q.pd || r.since > q.since {
		return nil
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(r.mem)))
	if s.Addr < start || s.Addr-start > uintptr(len(r.mem)) || uintptr(s.Bytes) > uintptr(len(r.mem))-(s.Addr-start) {
		return nil
	}
	return r.mem[s.Addr-start:][:s.Bytes:s.Bytes]
}

func (p *pd) CreateQP(init provider.QPInit) (provider.QP, error) {
	send, ok1 := init.SendCQ.(*cq)
	recv, ok2 := init.RecvCQ.(*cq)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("fake verbs: a queue pair needs completion queues of this fabric: %w", provider.ErrInvalid)
	}
	e := p.c.enter(CallCreateQP)
	defer p.c.m.mu.Unlock()
	port, c := p.c.port, init.Cap
	switch {
	case p.released || send.released || recv.released:
		return nil, provider.ErrReleased
	case e != 0:
		return nil, port.fail(provider.OpCreateQP, e)
	case init.Type != provider.UC:
		return nil, port.fail(provider.OpCreateQP, eUnsupported)
	case c.MaxSendWR > 4095 || c.MaxRecvWR > 4095 || c.MaxSendSGE > 1 || c.MaxRecvSGE > 1 || c.MaxInlineBytes > 0:
		return nil, port.fail(provider.OpCreateQP, eInvalid)
	case len(port.qps) == provider.AppleMaxQP:
		return nil, port.fail(provider.OpCreateQP, eBusy)
	}
	q := &qp{pd: p, port: port, num: p.c.m.number, cap: c, sendCQ: send, recvCQ: recv}
	p.c.m.number++
	port.qps = append(port.qps, q)
	send.qps = append(send.qps, q)
	if recv != send {
		recv.qps = append(recv.qps, q)
	}
	p.children++
	return q, nil
}

func (p *pd) Dealloc() error {
	e := p.c.enter(CallDeallocPD)
	defer p.c.m.mu.Unlock()
	switch {
	case p.released:
		return provider.ErrReleased
	case e != 0:
		return p.c.port.fail(provider.OpDeallocPD, e)
	case p.children > 0:
		return p.c.port.fail(provider.OpDeallocPD, eBusy)
	}
	p.released = true
	p.c.port.nPD--
	p.c.children--
	return nil
}
