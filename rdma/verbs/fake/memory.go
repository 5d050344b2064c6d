package fake

import (
	"errors"
	"fmt"
	"sync"

	"daisy/rdma/verbs/provider"
)

// Apple's errors, numbered as macOS does.
const (
	eIO          = 5
	eNoMem       = 12
	eBusy        = 16
	eInvalid     = 22
	eTimedOut    = 60
	eUnsupported = 102
)

const gidTable = 4

// Memory is a Fabric inside this process.
type Memory struct {
	mu     sync.Mutex // guards all that is reachable from here
	ports  []*port
	number uint32 // of the next queue pair
}

// port is a device and its only port.
type port struct {
	name    Port
	gids    [gidTable]provider.GID
	options Options
	peer    *port // at the cable's other end
	cable   int   // counts plugging and pulling
	frozen  bool
	faults  []fault

	nPD, nCQ, nMR int
	qps           []*qp
	sendFrames    int // outstanding, of all queue pairs
	recvFrames    int
}

type fault struct {
	call        Call
	left, errno int
}

// New returns a fabric without nodes.
func New() *Memory { return &Memory{number: 0x100} }

func (m *Memory) find(name Port) (*port, error) {
	for _, p := range m.ports {
		if p.name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("fake verbs: there is no device %s on node %s", name.Device, name.Node)
}

// AddDevice implements Fabric.
func (m *Memory) AddDevice(name Port, o Options) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.find(name); err == nil {
		return fmt.Errorf("fake verbs: node %s has a device %s already", name.Node, name.Device)
	}
	n := len(m.ports)
	p := &port{name: name, options: o.Or(n)}
	if p.options.GIDIndex >= gidTable || p.options.Budget > 1023 {
		return fmt.Errorf("fake verbs: options out of range: %+v", p.options)
	}
	for i := range p.gids {
		switch {
		case i == p.options.GIDIndex:
			p.gids[i] = provider.GIDOf(p.options.IPv4)
		case i == 0 || i == p.options.GIDIndex+1: // link-local, as Apple's are
			p.gids[i] = provider.GID{0: 0xfe, 1: 0x80, 14: byte(i), 15: byte(n)}
		}
	}
	m.ports = append(m.ports, p)
	return nil
}

// Wire implements Fabric.
func (m *Memory) Wire(a, b Port) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err1 := m.find(a)
	q, err2 := m.find(b)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if p == q || p.peer != nil || q.peer != nil {
		return fmt.Errorf("fake verbs: %v and %v cannot be joined", a, b)
	}
	p.peer, q.peer = q, p
	p.cable++
	q.cable++
	return nil
}

// Pull implements Fabric.
func (m *Memory) Pull(a Port) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.find(a)
	if err != nil {
		return err
	}
	if p.peer == nil {
		return fmt.Errorf("fake verbs: no cable is in %v", a)
	}
	p.cable++
	p.peer.cable++
	p.peer.peer, p.peer = nil, nil
	return nil
}

// Freeze implements Fabric.
func (m *Memory) Freeze(node string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := false
	for _, p := range m.ports {
		if p.name.Node == node {
			p.frozen, found = true, true
		}
	}
	if !found {
		return fmt.Errorf("fake verbs: there is no node %s", node)
	}
	return nil
}

// Fail implements Fabric.
func (m *Memory) Fail(a Port, call Call, nth, errno int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.find(a)
	if err != nil {
		return err
	}
	if nth < 1 {
		return fmt.Errorf("fake verbs: the calls to fail count from 1, not %d", nth)
	}
	p.faults = append(p.faults, fault{call, nth, errno})
	return nil
}

// Close implements Fabric.
func (m *Memory) Close() error { return nil }

// Provider implements Fabric.
func (m *Memory) Provider(node string) (provider.Provider, error) { return library{m, node}, nil }

// injected is the errno that a call is to fail with, 0 for none. The caller
// holds mu.
func (p *port) injected(call Call) int {
	for i := range p.faults {
		f := &p.faults[i]
		if f.call != call || f.left == 0 {
			continue
		}
		if f.left--; f.left == 0 {
			return f.errno
		}
	}
	return 0
}

func (p *port) fail(op provider.Op, errno int) error {
	return provider.NewError(p.name.Device, op, errno, true)
}

// library is the fabric as one node sees it.
type library struct {
	m    *Memory
	node string
}

func (l library) Devices() (out []string, err error) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	for _, p := range l.m.ports {
		if p.name.Node == l.node {
			out = append(out, p.name.Device)
		}
	}
	return out, nil
}

func (l library) Open(name string) (provider.Context, error) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	p, err := l.m.find(Port{l.node, name})
	if err != nil {
		return nil, fmt.Errorf("%w: %s", provider.ErrNoDevice, name)
	}
	if e := p.injected(CallOpen); e != 0 {
		return nil, p.fail(provider.OpOpen, e)
	}
	return &context{m: l.m, port: p, mrs: map[uint32]*mr{}}, nil
}
