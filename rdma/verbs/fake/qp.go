package fake

import (
	"slices"
	"time"

	"daisy/rdma/verbs/provider"
)

type qp struct {
	pd             *pd
	port           *port
	num            uint32
	cap            provider.QPCap
	sendCQ, recvCQ *cq
	state          provider.QPState
	released       bool

	// Since ready-to-receive.
	other        *port
	cable, since int
	dest         uint32
	sqPSN, rqPSN uint32

	sends, recvs           queue
	sendFrames, recvFrames int
}

func (q *qp) Num() uint32 { return q.num }

// peer is the queue pair at the other end, if each means the other and the
// cable that both became ready on is still in; else nil, which nothing tells.
func (q *qp) peer() *qp {
	if q.other == nil || q.cable != q.port.cable || q.port.frozen || q.other.frozen {
		return nil
	}
	for _, p := range q.other.qps {
		if p.num == q.dest && p.dest == q.num && p.cable == q.other.cable &&
			(p.state == provider.StateRTR || p.state == provider.StateRTS) {
			return p
		}
	}
	return nil
}

func (q *qp) Modify(a provider.QPAttr, mask provider.AttrMask) error {
	call := map[provider.QPState]Call{
		provider.StateInit: CallModifyInit, provider.StateRTR: CallModifyRTR, provider.StateRTS: CallModifyRTS,
	}[a.State]
	if a.State == provider.StateRTR {
		delay := q.pd.c.enter(CallRTRDelay)
		q.pd.c.m.mu.Unlock()
		time.Sleep(time.Duration(delay) * time.Millisecond)
	}
	e := q.pd.c.enter(call)
	defer q.pd.c.m.mu.Unlock()
	if q.released {
		return provider.ErrReleased
	}
	if e == 0 {
		e = q.modify(a, mask)
	}
	if e != 0 {
		return q.port.fail(provider.ModifyOp(a.State), e)
	}
	q.state = a.State
	return nil
}

func (q *qp) modify(a provider.QPAttr, mask provider.AttrMask) int {
	switch a.State {
	case provider.StateInit:
		if q.state != provider.StateReset || mask != 0x39 || a.Port != 1 || a.PKeyIndex != 0 {
			return eInvalid
		}
	case provider.StateRTR:
		if q.state != provider.StateInit || mask != 0x101181 {
			return eInvalid
		}
		return q.ready(a)
	case provider.StateRTS:
		if q.state != provider.StateRTR || mask != 0x10001 {
			return eInvalid
		}
		q.sqPSN = a.SQPSN
	case provider.StateErr:
		q.pd.poisoned = true
	default:
		return eInvalid
	}
	return 0
}

// ready checks the way to the peer, as the step to ready-to-receive does.
func (q *qp) ready(a provider.QPAttr) int {
	own := q.port.gids[q.port.options.GIDIndex]
	switch {
	case !a.AV.IsGlobal || a.AV.Port != 1 || a.PathMTU.Bytes() == 0,
		int(a.AV.SGIDIndex) != q.port.options.GIDIndex, a.AV.DGID.IsZero(), a.AV.DGID == own:
		return eInvalid
	case q.port.peer == nil, a.AV.DGID != q.port.peer.gids[q.port.peer.options.GIDIndex]:
		return eTimedOut
	}
	q.pd.steps++
	q.other, q.cable, q.since = q.port.peer, q.port.cable, q.pd.steps
	q.dest, q.rqPSN = a.DestQPN, a.RQPSN
	return 0
}

func (q *qp) Query() (provider.QPState, provider.QPCap, error) {
	e := q.pd.c.enter(CallQueryQP)
	defer q.pd.c.m.mu.Unlock()
	switch {
	case q.released:
		return 0, provider.QPCap{}, provider.ErrReleased
	case e != 0:
		return 0, provider.QPCap{}, q.port.fail(provider.OpQueryQP, e)
	}
	return q.state, q.cap, nil
}

func (q *qp) Destroy() error {
	e := q.pd.c.enter(CallDestroyQP)
	defer q.pd.c.m.mu.Unlock()
	switch {
	case q.released:
		return provider.ErrReleased
	case e != 0:
		return q.port.fail(provider.OpDestroyQP, e)
	}
	q.released = true
	mine := func(o *qp) bool { return o == q }
	q.port.qps = slices.DeleteFunc(q.port.qps, mine)
	q.sendCQ.qps = slices.DeleteFunc(q.sendCQ.qps, mine)
	q.recvCQ.qps = slices.DeleteFunc(q.recvCQ.qps, mine)
	q.port.sendFrames -= q.sendFrames
	q.port.recvFrames -= q.recvFrames
	q.pd.children--
	return nil
}
