package fake

import "daisy/rdma/verbs/provider"

type context struct {
	m        *Memory
	port     *port
	mrs      map[uint32]*mr
	keys     uint32
	children int
	closed   bool
}

// enter takes the lock for a control call and gives the errno to fail with.
func (c *context) enter(call Call) int {
	c.m.mu.Lock()
	return c.port.injected(call)
}

func (c *context) Device() string { return c.port.name.Device }

func (c *context) QueryDevice() (provider.DeviceAttr, error) {
	e := c.enter(CallQueryDev)
	defer c.m.mu.Unlock()
	switch {
	case c.closed:
		return provider.DeviceAttr{}, provider.ErrReleased
	case e != 0:
		return provider.DeviceAttr{}, c.port.fail(provider.OpQueryDevice, e)
	}
	return provider.DeviceAttr{
		MaxMRBytes: 0xfa0000, MaxQP: 11, MaxQPWR: 4095, MaxSGE: 1,
		MaxCQ: provider.AppleMaxCQ, MaxCQE: 4096, MaxMR: provider.AppleMaxMR, MaxPD: provider.AppleMaxPD, Ports: 1,
	}, nil
}

func (c *context) QueryPort(number uint8) (provider.PortAttr, error) {
	e := c.enter(CallQueryPort)
	defer c.m.mu.Unlock()
	if number != 1 && e == 0 {
		e = eInvalid
	}
	switch {
	case c.closed:
		return provider.PortAttr{}, provider.ErrReleased
	case e != 0:
		return provider.PortAttr{}, c.port.fail(provider.OpQueryPort, e)
	}
	a := provider.PortAttr{
		State: provider.PortDown, MaxMTU: provider.MTU4096, ActiveMTU: provider.MTU4096,
		GIDTableLen: gidTable, MaxMessageBytes: 0x1000000, LID: 1, LinkLayer: provider.LinkThunderbolt,
	}
	if c.port.peer != nil {
		a.State = provider.PortActive
	}
	return a, nil
}

func (c *context) QueryGID(number uint8, index int) (provider.GIDEntry, error) {
	e := c.enter(CallQueryGID)
	defer c.m.mu.Unlock()
	if (number != 1 || index < 0 || index >= gidTable) && e == 0 {
		e = eInvalid
	}
	switch {
	case c.closed:
		return provider.GIDEntry{}, provider.ErrReleased
	case e != 0:
		return provider.GIDEntry{}, c.port.fail(provider.OpQueryGID, e)
	}
	return provider.GIDEntry{Index: index, GID: c.port.gids[index]}, nil
}

func (c *context) AllocPD() (provider.PD, error) {
	e := c.enter(CallAllocPD)
	defer c.m.mu.Unlock()
	switch {
	case c.closed:
		return nil, provider.ErrReleased
	case e != 0:
		return nil, c.port.fail(provider.OpAllocPD, e)
	case c.port.peer == nil:
		return nil, &provider.Error{Device: c.Device(), Op: provider.OpAllocPD, Apple: true, PortDown: true}
	case c.port.nPD == provider.AppleMaxPD:
		return nil, c.port.fail(provider.OpAllocPD, eNoMem)
	}
	c.port.nPD++
	c.children++
	return &pd{c: c}, nil
}

func (c *context) CreateCQ(depth int) (provider.CQ, error) {
	e := c.enter(CallCreateCQ)
	defer c.m.mu.Unlock()
	switch {
	case c.closed:
		return nil, provider.ErrReleased
	case e != 0:
		return nil, c.port.fail(provider.OpCreateCQ, e)
	case depth < 1 || depth > 4096:
		return nil, c.port.fail(provider.OpCreateCQ, eInvalid)
	case c.port.nCQ == provider.AppleMaxCQ:
		return nil, c.port.fail(provider.OpCreateCQ, eNoMem)
	}
	c.port.nCQ++
	c.children++
	return &cq{c: c, depth: depth}, nil
}

func (c *context) Close() error {
	e := c.enter(CallClose)
	defer c.m.mu.Unlock()
	switch {
	case c.closed:
		return provider.ErrReleased
	case e != 0:
		return c.port.fail(provider.OpClose, e)
	case c.children > 0:
		return c.port.fail(provider.OpClose, eBusy)
	}
	c.closed = true
	return nil
}
