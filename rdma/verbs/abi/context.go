package abi

import (
	"sync"

	"daisy/rdma/verbs/provider"
)

// context is an open device: an ibv_context.
type context struct {
	l      *Library
	device string
	apple  bool // its errors are numbered as Apple does
	poll   uintptr
	send   uintptr
	recv   uintptr

	mu      sync.Mutex // of every control call, and:
	handle  uintptr    // 0 once closed
	scratch page[scratch]
	// portArgs are those of queryPort, which is called for as long as a group
	// lives and so allocates nothing.
	portArgs [3]uintptr
}

// scratch is what control calls read and write.
type scratch struct {
	port   portAttr
	device deviceAttr
	gid    gid
	init   qpInitAttr
	attr   qpAttr
}

// prepare reads the function table and which system's errors to expect.
func (c *context) prepare() (err error) {
	if c.scratch, err = newPage[scratch](); err != nil {
		return err
	}
	c.poll = at[uintptr](c.handle, opPollCQ)
	c.send = at[uintptr](c.handle, opPostSend)
	c.recv = at[uintptr](c.handle, opPostRecv)
	if c.poll == 0 || c.send == 0 || c.recv == 0 {
		return provider.ErrUnsupported
	}
	if attr, err := c.QueryPort(1); err == nil && attr.LinkLayer == provider.LinkThunderbolt {
		c.apple = true
	}
	return nil
}

func (c *context) Device() string { return c.device }

func (c *context) fail(op provider.Op, errno int) error {
	return provider.NewError(c.device, op, errno, c.apple)
}

// control makes a call that returns int; the caller holds mu.
func (c *context) control(op provider.Op, fn uintptr, args ...uintptr) error {
	if c.handle == 0 {
		return provider.ErrReleased
	}
	if errno := c.l.status(fn, args...); errno != 0 {
		return c.fail(op, errno)
	}
	return nil
}

// create makes a call that returns a pointer; the caller holds mu.
func (c *context) create(op provider.Op, fn uintptr, args ...uintptr) (uintptr, error) {
	if c.handle == 0 {
		return 0, provider.ErrReleased
	}
	handle, errno := c.l.do(fn, args...)
	if handle == 0 {
		return 0, c.fail(op, errno)
	}
	return handle, nil
}

func (c *context) QueryDevice() (provider.DeviceAttr, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &c.scratch.v.device
	if c.handle == 0 {
		return provider.DeviceAttr{}, provider.ErrReleased
	}
	*d = deviceAttr{}
	if err := c.control(provider.OpQueryDevice, c.l.call.queryDevice, c.handle, addr(d)); err != nil {
		return provider.DeviceAttr{}, err
	}
	return provider.DeviceAttr{
		MaxMRBytes: d.maxMRSize,
		MaxQP:      int(d.maxQP), MaxQPWR: int(d.maxQPWR), MaxSGE: int(d.maxSGE),
		MaxCQ: int(d.maxCQ), MaxCQE: int(d.maxCQE), MaxMR: int(d.maxMR), MaxPD: int(d.maxPD),
		Ports: int(d.physPortCnt),
	}, nil
}

func (c *context) QueryPort(port uint8) (provider.PortAttr, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queryPort(port)
}

func (c *context) queryPort(port uint8) (provider.PortAttr, error) {
	if c.handle == 0 {
		return provider.PortAttr{}, provider.ErrReleased
	}
	p := &c.scratch.v.port
	*p = portAttr{}
	c.portArgs = [3]uintptr{c.handle, uintptr(port), addr(p)}
	if err := c.control(provider.OpQueryPort, c.l.call.queryPort, c.portArgs[:]...); err != nil {
		return provider.PortAttr{}, err
	}
	return provider.PortAttr{
		State:  provider.PortState(p.state),
		MaxMTU: provider.MTU(p.maxMTU), ActiveMTU: provider.MTU(p.activeMTU),
		GIDTableLen:     int(p.gidTblLen),
		MaxMessageBytes: p.maxMsgSz,
		LID:             p.lid,
		LinkLayer:       provider.LinkLayer(p.linkLayer),
	}, nil
}

func (c *context) QueryGID(port uint8, index int) (provider.GIDEntry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handle == 0 {
		return provider.GIDEntry{}, provider.ErrReleased
	}
	g := &c.scratch.v.gid
	*g = gid{}
	if err := c.control(provider.OpQueryGID, c.l.call.queryGID, c.handle, uintptr(port), uintptr(index), addr(g)); err != nil {
		return provider.GIDEntry{}, err
	}
	return provider.GIDEntry{Index: index, GID: provider.GID(*g), Type: gidType(c.device, port, index)}, nil
}

func (c *context) AllocPD() (provider.PD, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handle == 0 {
		return nil, provider.ErrReleased
	}
	handle, errno := c.l.do(c.l.call.allocPD, c.handle)
	if handle == 0 {
		e := &provider.Error{Device: c.device, Op: provider.OpAllocPD, Errno: errno, Apple: c.apple}
		if attr, err := c.queryPort(1); err == nil && attr.State != provider.PortActive {
			e.PortDown = true
		}
		return nil, e
	}
	return &pd{c: c, handle: handle}, nil
}

func (c *context) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.control(provider.OpClose, c.l.call.closeDevice, c.handle); err != nil {
		return err
	}
	c.handle = 0
	c.scratch.free()
	return nil
}
