package provider

import (
	"errors"
	"fmt"
	"net/netip"
)

// GID is a port's address, in network order.
type GID [16]byte

// IsZero tells an empty entry.
func (g GID) IsZero() bool { return g == GID{} }

// IPv4 is the address of an IPv4-mapped GID.
func (g GID) IPv4() (netip.Addr, bool) {
	a := netip.AddrFrom16(g)
	return a.Unmap(), a.Is4In6()
}

func (g GID) String() string { return netip.AddrFrom16(g).String() }

// GIDOf is the IPv4-mapped GID of an address.
func GIDOf(a netip.Addr) GID { return netip.AddrFrom16(a.As16()).As16() }

// GIDType is the protocol that an entry's address is spoken with.
type GIDType uint8

const (
	GIDUnknown GIDType = iota // Thunderbolt, or not told
	GIDInfiniBand
	GIDRoCEv1
	GIDRoCEv2
)

// GIDEntry is one entry of a port's table.
type GIDEntry struct {
	Index int
	GID   GID
	Type  GIDType
}

// ErrNoGID is why FindGID found none. On a Mac the interface enN that belongs
// to rdma_enN needs an IPv4 address of its own; one on bridge0 does not count.
var ErrNoGID = errors.New("the port has no IPv4-mapped GID: give the network interface of this port an IPv4 address of its own (one on a bridge does not count)")

// FindGID scans a port's table for an IPv4-mapped GID and prefers RoCE v2 to
// v1. If want is valid only that address will do: the local address of a
// connection to the peer finds the device that faces it. Without one it gives
// ErrNoGID.
func FindGID(c Context, port uint8, want netip.Addr) (GIDEntry, error) {
	attr, err := c.QueryPort(port)
	if err != nil {
		return GIDEntry{}, err
	}
	var found *GIDEntry
	var failed error
	for i := range min(attr.GIDTableLen, GIDScan) {
		e, err := c.QueryGID(port, i)
		if err != nil { // seen for empty entries; a later one may be good
			failed = err
			continue
		}
		a, ok := e.GID.IPv4()
		if !ok || (want.IsValid() && a != want.Unmap()) {
			continue
		}
		if e.Type != GIDRoCEv1 {
			return e, nil
		}
		if found == nil {
			found = &e
		}
	}
	if found != nil {
		return *found, nil
	}
	err = ErrNoGID
	if want.IsValid() {
		err = fmt.Errorf("no entry is %v: %w", want, ErrNoGID)
	}
	return GIDEntry{}, fmt.Errorf("%s: %w", c.Device(), errors.Join(err, failed))
}
