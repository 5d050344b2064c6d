package fake

import "daisy/rdma/verbs/provider"

type cq struct {
	c        *context
	depth    int
	qps      []*qp
	first    int // whose turn it is
	overrun  bool
	released bool
}

// Poll implements provider.CQ. More completions than the queue is deep break
// it for good.
func (u *cq) Poll(wcs []provider.WC) (n int, err error) {
	e := u.c.enter(CallPollCQ)
	defer u.c.m.mu.Unlock()
	switch {
	case u.released:
		return 0, provider.ErrReleased
	case e != 0:
		return 0, u.c.port.fail(provider.OpPoll, e)
	case u.overrun:
		return 0, u.c.port.fail(provider.OpPoll, eIO)
	}
	wcs = wcs[:min(len(wcs), provider.PollBatch)]
	ready := 0
	for i := range u.qps {
		q := u.qps[(u.first+i)%len(u.qps)]
		p := q.peer()
		if q.sendCQ == u {
			n += q.sent(p, wcs[n:], &ready)
		}
		if q.recvCQ == u {
			n += q.got(p, wcs[n:], &ready)
		}
	}
	if len(u.qps) > 0 {
		u.first = (u.first + 1) % len(u.qps)
	}
	if ready > u.depth {
		u.overrun = true
		return 0, u.c.port.fail(provider.OpPoll, eIO)
	}
	return n, nil
}

func (u *cq) Destroy() error {
	e := u.c.enter(CallDestroyCQ)
	defer u.c.m.mu.Unlock()
	switch {
	case u.released:
		return provider.ErrReleased
	case e != 0:
		return u.c.port.fail(provider.OpDestroyCQ, e)
	case len(u.qps) > 0:
		return u.c.port.fail(provider.OpDestroyCQ, eBusy)
	}
	u.released = true
	u.c.port.nCQ--
	u.c.children--
	return nil
}
