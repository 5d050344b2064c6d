package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// network is an interface in use, as it was when looked at.
type network struct {
	iface    net.Interface
	prefixes []netip.Prefix // its addresses with their subnets; zones left out
}

// skipped are the beginnings of interface names that are never chosen by
// default: tunnels, where traffic would leave the desk or crawl, and links that
// reach no other machine of the desk.
var skipped = []string{
	"utun", "tun", "tap", "tailscale", "ts", "wg", "ipsec", "ppp", "gif", "stf", "zt", "nordlynx", "proton", // tunnels
	"awdl", "llw", // Apple's own wireless between devices
	"docker", "virbr", "veth", "vmnet", "vboxnet", "bridge1", // machines inside this one
}

// suitable says whether an interface is used when the person chose none.
func suitable(iface net.Interface) bool {
	const need = net.FlagUp | net.FlagMulticast
	if iface.Flags&need != need || iface.Flags&(net.FlagLoopback|net.FlagPointToPoint) != 0 {
		return false
	}
	return !slices.ContainsFunc(skipped, func(prefix string) bool {
		rest, ok := strings.CutPrefix(iface.Name, prefix)
		// "tun0" is a tunnel, "tundra" may be somebody's name for a card.
		return ok && strings.Trim(rest, "0123456789") == ""
	})
}

// networks lists the interfaces to use: those named, or all suitable ones.
// A named one that does not exist is an error; one that is down or has no
// address is left out until it has.
func networks(names []string) ([]network, error) {
	var ifaces []net.Interface
	if len(names) == 0 {
		all, err := net.Interfaces()
		if err != nil {
			return nil, fmt.Errorf("listing the network interfaces: %w", err)
		}
		for _, iface := range all {
			if suitable(iface) {
				ifaces = append(ifaces, iface)
			}
		}
	}
	for _, name := range names {
		iface, err := net.InterfaceByName(name)
		if err != nil {
			return nil, fmt.Errorf("network interface %q: %w", name, err)
		}
		if iface.Flags&net.FlagUp != 0 {
			ifaces = append(ifaces, *iface)
		}
	}
	var found []network
	for _, iface := range ifaces {
		addrs, err := iface.Addrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of %s: %w", iface.Name, err)
		}
		n := network{iface: iface}
		for _, addr := range addrs {
			// Others than *net.IPNet, and what does not parse, are no subnets.
			if prefix, err := netip.ParsePrefix(addr.String()); err == nil && !prefix.Addr().IsMulticast() {
				n.prefixes = append(n.prefixes, prefix)
			}
		}
		if len(n.prefixes) > 0 {
			found = append(found, n)
		}
	}
	return found, nil
}

// addresses lists what to announce: every address of the networks, or those
// equal to only if it is set.
func addresses(networks []network, only netip.Addr) []netip.Addr {
	var found []netip.Addr
	for _, n := range networks {
		for _, prefix := range n.prefixes {
			if addr := prefix.Addr(); !only.IsValid() || addr == only.WithZone("") {
				found = append(found, addr)
			}
		}
	}
	slices.SortFunc(found, netip.Addr.Compare)
	return slices.Compact(found)
}

// reachable returns how addr, announced on network at, is dialled from here:
// an announced address counts only where it is on the link of an interface in
// use, so that no announcement sends traffic through a tunnel or off the desk.
// A link-local IPv6 address means the interface it was heard on.
func reachable(addr netip.Addr, at network, networks []network) (netip.Addr, bool) {
	addr = addr.Unmap().WithZone("")
	if addr.IsUnspecified() || addr.IsMulticast() {
		return netip.Addr{}, false
	}
	if addr.Is6() && addr.IsLinkLocalUnicast() {
		return addr.WithZone(at.iface.Name), true
	}
	for _, n := range networks {
		for _, prefix := range n.prefixes {
			if prefix.Contains(addr) {
				return addr, true
			}
		}
	}
	return netip.Addr{}, false
}

// same says whether two looks at the networks saw the same.
func same(a, b []network) bool {
	return slices.EqualFunc(a, b, func(a, b network) bool {
		return a.iface.Index == b.iface.Index && a.iface.Name == b.iface.Name && slices.Equal(a.prefixes, b.prefixes)
	})
}

// Addresses lists the addresses that a Service with these interfaces announces,
// but link-local IPv6 ones, which mean nothing to another machine.
func Addresses(names []string) ([]netip.Addr, error) {
	found, err := networks(names)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(addresses(found, netip.Addr{}), func(a netip.Addr) bool {
		return a.Is6() && a.IsLinkLocalUnicast()
	}), nil
}

// IsLoopback says whether the interface of that name reaches this machine only.
func IsLoopback(name string) bool {
	iface, err := net.InterfaceByName(name)
	return err == nil && iface.Flags&net.FlagLoopback != 0
}
