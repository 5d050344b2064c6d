package verbs_test

import (
	"sync"

	"daisy/rdma/verbs/provider"
)

// A spy stands between the transport and a provider. It counts what is made
// and not released, and the frames outstanding on each device; it lets a test
// fail, delay or watch any call, and change completions.
type spy struct {
	provider.Provider

	mu   sync.Mutex // guards the following
	live map[provider.Op]int
	// before is called before each call; an error is the call's result.
	before func(device string, op provider.Op) error
	// completed may change completions before the transport sees them.
	completed func(device string, wcs []provider.WC)
	devices   map[string]*traffic
}

// traffic is what one device has outstanding, in frames.
type traffic struct {
	sends, recvs         int
	maxSends, maxRecvs   int
	bulkSends, smallSend int // posted so far, in slots
	pending              map[work]int
}

type work struct {
	qpn uint32
	id  uint64
}

func newSpy(p provider.Provider) *spy {
	return &spy{Provider: p, live: map[provider.Op]int{}, devices: map[string]*traffic{}}
}

func (s *spy) hook(device string, op provider.Op) error {
	s.mu.Lock()
	f := s.before
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(device, op)
}

// fail sets the hook.
func (s *spy) intercept(f func(device string, op provider.Op) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

func (s *spy) tamper(f func(device string, wcs []provider.WC)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.completed = f
}

// count notes that something was made (+1) or released (-1).
func (s *spy) count(made provider.Op, n int, err error) error {
	if err == nil {
		s.mu.Lock()
		s.live[made] += n
		s.mu.Unlock()
	}
	return err
}

// alive counts what was made by op and not released.
func (s *spy) alive(op provider.Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[op]
}

func (s *spy) seen(device string) traffic {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.devices[device]; t != nil {
		return *t
	}
	return traffic{}
}

func (s *spy) Devices() ([]string, error) {
	if err := s.hook("", provider.OpListDevices); err != nil {
		return nil, err
	}
	return s.Provider.Devices()
}

func (s *spy) Open(name string) (provider.Context, error) {
	if err := s.hook(name, provider.OpOpen); err != nil {
		return nil, err
	}
	c, err := s.Provider.Open(name)
	if s.count(provider.OpOpen, 1, err) != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.devices[name] == nil {
		s.devices[name] = &traffic{pending: map[work]int{}}
	}
	return &spyContext{c, s}, nil
}

type spyContext struct {
	provider.Context
	s *spy
}

func (c *spyContext) QueryPort(port uint8) (provider.PortAttr, error) {
	if err := c.s.hook(c.Device(), provider.OpQueryPort); err != nil {
		return provider.PortAttr{}, err
	}
	return c.Context.QueryPort(port)
}

func (c *spyContext) QueryGID(port uint8, i int) (provider.GIDEntry, error) {
	if err := c.s.hook(c.Device(), provider.OpQueryGID); err != nil {
		return provider.GIDEntry{}, err
	}
	return c.Context.QueryGID(port, i)
}

func (c *spyContext) AllocPD() (provider.PD, error) {
	if err := c.s.hook(c.Device(), provider.OpAllocPD); err != nil {
		return nil, err
	}
	pd, err := c.Context.AllocPD()
	return &spyPD{pd, c}, c.s.count(provider.OpAllocPD, 1, err)
}

func (c *spyContext) CreateCQ(depth int) (provider.CQ, error) {
	if err := c.s.hook(c.Device(), provider.OpCreateCQ); err != nil {
		return nil, err
	}
	cq, err := c.Context.CreateCQ(depth)
	return &spyCQ{cq, c}, c.s.count(provider.OpCreateCQ, 1, err)
}

func (c *spyContext) Close() error { return c.s.count(provider.OpOpen, -1, c.Context.Close()) }

type spyPD struct {
	provider.PD
	c *spyContext
}

func (p *spyPD) RegMR(mem []byte, access provider.Access) (provider.MR, error) {
	if err := p.c.s.hook(p.c.Device(), provider.OpRegMR); err != nil {
		return nil, err
	}
	mr, err := p.PD.RegMR(mem, access)
	return &spyMR{mr, p.c}, p.c.s.count(provider.OpRegMR, 1, err)
}

func (p *spyPD) CreateQP(init provider.QPInit) (provider.QP, error) {
	if err := p.c.s.hook(p.c.Device(), provider.OpCreateQP); err != nil {
		return nil, err
	}
	init.SendCQ, init.RecvCQ = init.SendCQ.(*spyCQ).CQ, init.RecvCQ.(*spyCQ).CQ
	qp, err := p.PD.CreateQP(init)
	return &spyQP{qp, p.c}, p.c.s.count(provider.OpCreateQP, 1, err)
}

func (p *spyPD) Dealloc() error { return p.c.s.count(provider.OpAllocPD, -1, p.PD.Dealloc()) }

type spyMR struct {
	provider.MR
	c *spyContext
}

func (m *spyMR) Dereg() error { return m.c.s.count(provider.OpRegMR, -1, m.MR.Dereg()) }

type spyCQ struct {
	provider.CQ
	c *spyContext
}

func (q *spyCQ) Destroy() error { return q.c.s.count(provider.OpCreateCQ, -1, q.CQ.Destroy()) }

func (q *spyCQ) Poll(wcs []provider.WC) (int, error) {
	if err := q.c.s.hook(q.c.Device(), provider.OpPoll); err != nil {
		return 0, err
	}
	n, err := q.CQ.Poll(wcs)
	if n == 0 {
		return n, err
	}
	s := q.c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.devices[q.c.Device()]
	for _, wc := range wcs[:n] {
		w := work{wc.QPN, wc.ID}
		if frames := t.pending[w]; frames > 0 {
			t.recvs -= frames
		} else {
			t.sends += frames
		}
		delete(t.pending, w)
	}
	if s.completed != nil {
		s.completed(q.c.Device(), wcs[:n])
	}
	return n, err
}

type spyQP struct {
	provider.QP
	c *spyContext
}

func (q *spyQP) Modify(attr provider.QPAttr, mask provider.AttrMask) error {
	if err := q.c.s.hook(q.c.Device(), provider.ModifyOp(attr.State)); err != nil {
		return err
	}
	return q.QP.Modify(attr, mask)
}

func (q *spyQP) Query() (provider.QPState, provider.QPCap, error) {
	if err := q.c.s.hook(q.c.Device(), provider.OpQueryQP); err != nil {
		return 0, provider.QPCap{}, err
	}
	return q.QP.Query()
}

// Destroy also forgets what was outstanding.
func (q *spyQP) Destroy() error {
	s := q.c.s
	num := q.Num()
	err := s.count(provider.OpCreateQP, -1, q.QP.Destroy())
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.devices[q.c.Device()]
	for w, frames := range t.pending {
		if w.qpn == num {
			t.recvs -= max(frames, 0)
			t.sends += min(frames, 0)
			delete(t.pending, w)
		}
	}
	return err
}

func (q *spyQP) PostSend(id uint64, slot provider.Slot, flags provider.SendFlags) error {
	return q.post(provider.OpPostSend, id, -provider.Frames(int(slot.Bytes)), func() error { return q.QP.PostSend(id, slot, flags) })
}

func (q *spyQP) PostRecv(id uint64, slot provider.Slot) error {
	return q.post(provider.OpPostRecv, id, provider.Frames(int(slot.Bytes)), func() error { return q.QP.PostRecv(id, slot) })
}

// post counts frames, negative for sends, before the call: the completion may
// be polled before it returns.
func (q *spyQP) post(op provider.Op, id uint64, frames int, call func() error) error {
	s := q.c.s
	if err := s.hook(q.c.Device(), op); err != nil {
		return err
	}
	s.mu.Lock()
	t := s.devices[q.c.Device()]
	w := work{q.Num(), id}
	t.pending[w] = frames
	if frames > 0 {
		t.recvs += frames
		t.maxRecvs = max(t.maxRecvs, t.recvs)
	} else {
		t.sends -= frames
		t.maxSends = max(t.maxSends, t.sends)
		if frames < -provider.LatencyFrames {
			t.bulkSends++
		} else {
			t.smallSend++
		}
	}
	s.mu.Unlock()
	err := call()
	if err != nil {
		s.mu.Lock()
		t.recvs -= max(frames, 0)
		t.sends += min(frames, 0)
		delete(t.pending, w)
		s.mu.Unlock()
	}
	return err
}
