package verbs

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"daisy/rdma/verbs/provider"
)

// maxPorts is how many ports a rank tells of.
const maxPorts = 16

// A portInfo is what ranks tell each other about a port that can be used.
type portInfo struct {
	Device  string             `json:"device"`
	Link    provider.LinkLayer `json:"link"`
	Types   []provider.QPType  `json:"types"` // best first
	Address netip.Addr         `json:"address"`
	// Bits is the length of the network's prefix, 0 when no interface of the
	// machine has the address.
	Bits int `json:"bits"`
}

// A localPort is the same with what only this rank needs.
type localPort struct {
	portInfo
	device *device
	attr   provider.PortAttr
	gid    provider.GIDEntry
}

// inventory opens the devices and lists the ports that are active and have an
// IPv4-mapped GID. The error says why there is none, or why some are not there.
func (h *Host) inventory(o Options, now time.Time) ([]localPort, error) {
	names, err := h.provider.Devices()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("this machine has no RDMA devices")
	}
	rest := resting(o.MarkerDir, now)
	prefixes := interfacePrefixes()
	var ports []localPort
	var errs []error
	for _, name := range names {
		if until := rest[name]; now.Before(until) {
			errs = append(errs, fmt.Errorf("%s rests until %s: a process died while it used this device", name, until.Format("15:04")))
			continue
		}
		p, err := h.inspect(name, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.Bits = prefixes[p.Address]
		ports = append(ports, p)
	}
	if len(ports) > maxPorts {
		ports = ports[:maxPorts]
	}
	return ports, errors.Join(errs...)
}

func (h *Host) inspect(name string, o Options) (localPort, error) {
	d, err := h.open(name)
	if err != nil {
		return localPort{}, err
	}
	p := localPort{portInfo: portInfo{Device: name}, device: d}
	if p.attr, err = d.ctx.QueryPort(port); err != nil {
		return p, err
	}
	if p.attr.State != provider.PortActive {
		return p, fmt.Errorf("%s: %v: %w", name, p.attr.State, provider.ErrPortDown)
	}
	d.link, p.Link = p.attr.LinkLayer, p.attr.LinkLayer
	if p.gid, err = provider.FindGID(d.ctx, port, netip.Addr{}); err != nil {
		return p, err
	}
	p.Address, _ = p.gid.GID.IPv4()
	p.Types, err = d.types(o.Type)
	return p, err
}

// types lists the kinds of queue pairs that the device is to be used with. On
// Thunderbolt there is UC alone, and asking for more costs a queue pair; others
// are tried, because some drivers offer UC alone too.
func (d *device) types(forced provider.QPType) ([]provider.QPType, error) {
	if d.link == provider.LinkThunderbolt {
		if forced == provider.RC {
			return nil, fmt.Errorf("%s: %w: %v", d.name, provider.ErrUnsupported, forced)
		}
		return []provider.QPType{provider.UC}, nil
	}
	if forced != 0 {
		return []provider.QPType{forced}, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	pd, err := d.domain()
	if err != nil {
		return nil, err
	}
	cq, err := d.ctx.CreateCQ(1)
	if err != nil {
		return nil, err
	}
	var types []provider.QPType
	qp, err := pd.CreateQP(provider.QPInit{Type: provider.RC, SendCQ: cq, RecvCQ: cq,
		Cap: provider.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}})
	switch {
	case err == nil:
		types = append(types, provider.RC)
		err = qp.Destroy()
	case errors.Is(err, provider.ErrUnsupported):
		err = nil
	}
	if err = errors.Join(err, cq.Destroy()); err != nil {
		return nil, err
	}
	return append(types, provider.UC), nil
}

// interfacePrefixes maps the addresses of this machine's interfaces to the
// lengths of their networks' prefixes.
func interfacePrefixes() map[netip.Addr]int {
	bits := map[netip.Addr]int{}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return bits // then all prefixes are unknown
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			bits[p.Addr().Unmap()] = p.Bits()
		}
	}
	return bits
}
