package discovery

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

var (
	group4 = &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}
	group6 = &net.UDPAddr{IP: net.ParseIP("ff02::fb"), Port: 5353}
)

// link speaks mDNS on some networks: it asks, listens, announces this node and
// answers for it. Its networks never change; the Service opens a new one when
// they do.
type link struct {
	networks []network
	announce map[int][]byte       // what is said on each network, by interface
	goodbye  map[int][]byte       // likewise
	asked    func([]byte) bool    // whether a query is about this node
	hear     func(heard, network) // called on the readers' goroutines
	v4       *ipv4.PacketConn     // one of the two may be nil
	v6       *ipv6.PacketConn
	readers  sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	window time.Time  // when answers were last counted from 0
	nSaid  int        // answers since then
}

// maxAnswers a second: however often others ask, we do not flood the network.
const maxAnswers = 20

// open joins the mDNS groups on the networks. One family on one network is
// enough to go on. The link neither announces nor asks by itself.
func (b *link) open() error {
	networks := b.networks
	var errs []error
	// Go binds a multicast address as the wildcard with the port shared, so the
	// system's own responder goes on working.
	if conn, err := net.ListenUDP("udp4", group4); err != nil {
		errs = append(errs, err)
	} else {
		b.v4 = ipv4.NewPacketConn(conn)
		err := b.v4.SetControlMessage(ipv4.FlagInterface|ipv4.FlagDst, true)
		err = errors.Join(err, b.v4.SetMulticastLoopback(true), b.v4.SetMulticastTTL(255))
		if err == nil {
			err = joinAny(networks, func(iface *net.Interface) error { return b.v4.JoinGroup(iface, group4) })
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("IPv4: %w", err))
			b.v4.Close()
			b.v4 = nil
		}
	}
	if conn, err := net.ListenUDP("udp6", group6); err != nil {
		errs = append(errs, err)
	} else {
		b.v6 = ipv6.NewPacketConn(conn)
		err := b.v6.SetControlMessage(ipv6.FlagInterface|ipv6.FlagDst, true)
		err = errors.Join(err, b.v6.SetMulticastLoopback(true), b.v6.SetMulticastHopLimit(255))
		if err == nil {
			err = joinAny(networks, func(iface *net.Interface) error { return b.v6.JoinGroup(iface, group6) })
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("IPv6: %w", err))
			b.v6.Close()
			b.v6 = nil
		}
	}
	if b.v4 == nil && b.v6 == nil {
		return fmt.Errorf("listening for other nodes: %w", errors.Join(errs...))
	}
	// close waits for both.
	if b.v4 != nil {
		b.readers.Go(b.read4)
	}
	if b.v6 != nil {
		b.readers.Go(b.read6)
	}
	return nil
}

// joinAny joins as many networks as let us; only none at all is an error.
func joinAny(networks []network, join func(*net.Interface) error) error {
	var errs []error
	for _, n := range networks {
		if err := join(&n.iface); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n.iface.Name, err))
		}
	}
	if len(errs) < len(networks) {
		return nil
	}
	return errors.Join(errs...)
}

// ask sends the query on every network.
func (b *link) ask() {
	packet, err := query()
	if err != nil {
		return
	}
	for _, n := range b.networks {
		b.send(packet, n.iface.Index)
	}
}

// tell announces this node on every network, or says goodbye for it.
func (b *link) tell(packets map[int][]byte) {
	for index, packet := range packets {
		b.send(packet, index)
	}
}

// send sends to the group on one network. What cannot be sent now is said again
// at the next turn, so errors do not matter.
func (b *link) send(packet []byte, ifIndex int) {
	if b.v4 != nil {
		_, _ = b.v4.WriteTo(packet, &ipv4.ControlMessage{IfIndex: ifIndex}, group4)
	}
	if b.v6 != nil {
		_, _ = b.v6.WriteTo(packet, &ipv6.ControlMessage{IfIndex: ifIndex}, group6)
	}
}

// close says goodbye, ends the readers and waits for them.
func (b *link) close() {
	b.tell(b.goodbye)
	if b.v4 != nil {
		b.v4.Close()
	}
	if b.v6 != nil {
		b.v6.Close()
	}
	b.readers.Wait()
}

func (b *link) read4() {
	buffer := make([]byte, maxPacket+1)
	for {
		n, cm, from, err := b.v4.ReadFrom(buffer)
		if err != nil {
			return
		}
		if cm != nil && cm.Dst.Equal(group4.IP) {
			b.packet(buffer[:n], cm.IfIndex, from)
		}
	}
}

func (b *link) read6() {
	buffer := make([]byte, maxPacket+1)
	for {
		n, cm, from, err := b.v6.ReadFrom(buffer)
		if err != nil {
			return
		}
		if cm != nil && cm.Dst.Equal(group6.IP) {
			b.packet(buffer[:n], cm.IfIndex, from)
		}
	}
}

// packet takes an mDNS packet that came on one of our networks from a machine
// on that link (RFC 6762, 11).
func (b *link) packet(packet []byte, ifIndex int, from net.Addr) {
	udp, ok := from.(*net.UDPAddr)
	if !ok || udp.Port != group4.Port {
		return
	}
	at := slices.IndexFunc(b.networks, func(n network) bool { return n.iface.Index == ifIndex })
	if at < 0 {
		return
	}
	source, ok := netip.AddrFromSlice(udp.IP)
	if !ok {
		return
	}
	source = source.Unmap()
	// On loopback the kernel may pick another interface's address as the source.
	onLink := b.networks[at].iface.Flags&net.FlagLoopback != 0 ||
		source.Is6() && source.IsLinkLocalUnicast() ||
		slices.ContainsFunc(b.networks[at].prefixes, func(p netip.Prefix) bool { return p.Contains(source) })
	if !onLink {
		return
	}
	if b.asked != nil && b.asked(packet) {
		if b.mayAnswer(time.Now()) {
			b.send(b.announce[ifIndex], ifIndex)
		}
		return
	}
	found, err := parsePacket(packet)
	if err != nil {
		return
	}
	for _, h := range found {
		b.hear(h, b.networks[at])
	}
}

// mayAnswer counts an answer and says whether it is one too many.
func (b *link) mayAnswer(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.window) >= time.Second {
		b.window, b.nSaid = now, 0
	}
	b.nSaid++
	return b.nSaid <= maxAnswers
}
