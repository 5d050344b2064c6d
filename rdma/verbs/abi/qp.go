package abi

import (
	"github.com/ebitengine/purego"

	"daisy/rdma/verbs/provider"
)

// qp is an ibv_qp.
type qp struct {
	c      *context
	handle uintptr // guarded by the context's mutex, but for posts
	typ    provider.QPType
	num    uint32
	// What posts hand to the library; each direction has its own, as each may
	// have its own goroutine.
	send     page[sendPost]
	recv     page[recvPost]
	sendArgs [3]uintptr
	_        [64]byte // apart, so that the two directions do not share a cache line
	recvArgs [3]uintptr
}

// bad is where the library may say which request it refused. There is one, so
// nobody looks, and Apple's may not say.
type sendPost struct {
	wr  sendWR
	sge sge
	bad uintptr
}

type recvPost struct {
	wr  recvWR
	sge sge
	bad uintptr
}

func newQP(c *context, t provider.QPType) (q *qp, err error) {
	q = &qp{c: c, typ: t}
	if q.send, err = newPage[sendPost](); err != nil {
		return nil, err
	}
	if q.recv, err = newPage[recvPost](); err != nil {
		q.free()
		return nil, err
	}
	q.send.v.wr = sendWR{sgList: addr(&q.send.v.sge), numSGE: 1, opcode: opcodeSend}
	q.recv.v.wr = recvWR{sgList: addr(&q.recv.v.sge), numSGE: 1}
	return q, nil
}

func (q *qp) open(handle uintptr) {
	q.handle, q.num = handle, at[uint32](handle, qpNum)
	q.sendArgs = [3]uintptr{handle, addr(&q.send.v.wr), addr(&q.send.v.bad)}
	q.recvArgs = [3]uintptr{handle, addr(&q.recv.v.wr), addr(&q.recv.v.bad)}
}

func (q *qp) free() {
	q.send.free()
	q.recv.free()
}

func (q *qp) Num() uint32 { return q.num }

func (q *qp) PostSend(id uint64, s provider.Slot, flags provider.SendFlags) error {
	if q.handle == 0 {
		return provider.ErrReleased
	}
	p := q.send.v
	p.wr.wrID, p.wr.sendFlags = id, uint32(flags)
	p.sge = sge{addr: s.Addr, length: s.Bytes, lkey: s.LKey}
	r, _, _ := purego.SyscallN(q.c.send, q.sendArgs[:]...)
	if rc := int32(r); rc != 0 {
		return q.refused(provider.OpPostSend, rc)
	}
	return nil
}

func (q *qp) PostRecv(id uint64, s provider.Slot) error {
	if q.handle == 0 {
		return provider.ErrReleased
	}
	p := q.recv.v
	p.wr.wrID = id
	p.sge = sge{addr: s.Addr, length: s.Bytes, lkey: s.LKey}
	r, _, _ := purego.SyscallN(q.c.recv, q.recvArgs[:]...)
	if rc := int32(r); rc != 0 {
		return q.refused(provider.OpPostRecv, rc)
	}
	return nil
}

// refused: Linux gives positive numbers, Apple has been seen to give negative
// ones; both say ENOMEM for a full queue.
func (q *qp) refused(op provider.Op, rc int32) error {
	if rc == 12 || rc == -12 {
		return provider.ErrQueueFull
	}
	return q.c.fail(op, int(rc))
}

func (q *qp) Modify(a provider.QPAttr, mask provider.AttrMask) error {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	if q.handle == 0 || q.c.handle == 0 {
		return provider.ErrReleased
	}
	to := &q.c.scratch.v.attr
	*to = qpAttr{
		qpState: uint32(a.State), pathMTU: uint32(a.PathMTU),
		rqPSN: a.RQPSN, sqPSN: a.SQPSN, destQPNum: a.DestQPN, accessFlags: uint32(a.Access),
		ah: ahAttr{
			grh:  globalRoute{dgid: gid(a.AV.DGID), sgidIndex: a.AV.SGIDIndex, hopLimit: a.AV.HopLimit},
			dlid: a.AV.DLID, sl: a.AV.SL, srcPathBits: a.AV.SrcPathBits, port: a.AV.Port,
		},
		pkeyIndex: a.PKeyIndex, portNum: a.Port,
		maxRDAtomic: a.MaxRDAtomic, maxDestRDAtomic: a.MaxDestRDAtomic, minRNRTimer: a.MinRNRTimer,
		timeout: a.Timeout, retryCnt: a.RetryCount, rnrRetry: a.RNRRetry,
	}
	if a.AV.IsGlobal {
		to.ah.isGlobal = 1
	}
	return q.c.control(provider.ModifyOp(a.State), q.c.l.call.modifyQP, q.handle, addr(to), uintptr(mask))
}

func (q *qp) Query() (provider.QPState, provider.QPCap, error) {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	if q.handle == 0 || q.c.handle == 0 {
		return 0, provider.QPCap{}, provider.ErrReleased
	}
	attr, init := &q.c.scratch.v.attr, &q.c.scratch.v.init
	*attr, *init = qpAttr{}, qpInitAttr{}
	err := q.c.control(provider.OpQueryQP, q.c.l.call.queryQP, q.handle, addr(attr), qpQueryState|qpQueryCap, addr(init))
	if err != nil {
		return 0, provider.QPCap{}, err
	}
	return provider.QPState(attr.qpState), provider.QPCap{
		MaxSendWR: attr.cap.maxSendWR, MaxRecvWR: attr.cap.maxRecvWR,
		MaxSendSGE: attr.cap.maxSendSGE, MaxRecvSGE: attr.cap.maxRecvSGE,
		MaxInlineBytes: attr.cap.maxInlineData,
	}, nil
}

func (q *qp) Destroy() error {
	if err := q.c.release(&q.handle, provider.OpDestroyQP, q.c.l.call.destroyQP); err != nil {
		return err
	}
	q.free()
	return nil
}
