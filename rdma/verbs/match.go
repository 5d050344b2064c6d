package verbs

import (
	"errors"
	"fmt"
	"slices"

	"daisy/rdma/verbs/provider"
)

// A side is what one rank has told about itself to all others.
type side struct {
	ports  []portInfo
	cables map[int][]string // by peer, devices that its owner named
}

// A railPlan is one cable: a port of the lower rank and one of the higher.
type railPlan struct {
	low, high int // in the sides' ports
	kind      provider.QPType
}

// match decides which ports of two ranks face each other. It depends on its
// arguments alone, and every rank knows all sides, so all decide alike.
func match(sides []side, low, high int) ([]railPlan, error) {
	m := matcher{sides, low, high}
	var plans []railPlan
	var err error
	if len(sides[low].cables[high]) > 0 && len(sides[high].cables[low]) > 0 {
		plans, err = m.named()
	} else {
		plans, err = m.byAddress()
	}
	if err != nil {
		return nil, err
	}
	if len(plans) > maxRails {
		plans = plans[:maxRails]
	}
	for i := range plans {
		l, h := sides[low].ports[plans[i].low], sides[high].ports[plans[i].high]
		plans[i].kind = commonType(l.Types, h.Types)
		if plans[i].kind == 0 {
			return nil, fmt.Errorf("%s and %s have no kind of queue pair in common", l.Device, h.Device)
		}
	}
	return plans, nil
}

type matcher struct {
	sides     []side
	low, high int
}

// commonType is the first of a that b has too.
func commonType(a, b []provider.QPType) provider.QPType {
	for _, t := range a {
		if slices.Contains(b, t) {
			return t
		}
	}
	return 0
}

// named pairs the k-th name of one side with the k-th of the other.
func (m matcher) named() ([]railPlan, error) {
	low, high := m.sides[m.low], m.sides[m.high]
	ls, hs := low.cables[m.high], high.cables[m.low]
	if len(ls) != len(hs) {
		return nil, fmt.Errorf("one side names %d cables, the other %d", len(ls), len(hs))
	}
	var plans []railPlan
	for k := range ls {
		l, h := low.find(ls[k]), high.find(hs[k])
		if l >= 0 && h >= 0 { // else that cable is out; others may be in
			plans = append(plans, railPlan{low: l, high: h})
		}
	}
	if len(plans) == 0 {
		return nil, fmt.Errorf("none of the cables named (%q, %q) is in use at both ends", ls, hs)
	}
	return plans, nil
}

func (s side) find(device string) int {
	return slices.IndexFunc(s.ports, func(p portInfo) bool { return p.Device == device })
}

// candidate tells whether a port may face a peer, as far as its owner has
// named ports.
func (s side) candidate(i, peer int) bool {
	device := s.ports[i].Device
	if named := s.cables[peer]; len(named) > 0 {
		return slices.Contains(named, device)
	}
	for _, named := range s.cables {
		if slices.Contains(named, device) {
			return false
		}
	}
	return true
}

// mayFace tells whether the cable of port i of rank r can end in port j of
// rank s. Two ranks on one machine have the same ports: over Ethernet a port
// reaches itself, but no Thunderbolt cable does.
func (m matcher) mayFace(r, i, s, j int) bool {
	p, q := m.sides[r].ports[i], m.sides[s].ports[j]
	if p.Link == provider.LinkThunderbolt && p.Address == q.Address {
		return false
	}
	return m.sides[r].candidate(i, s) && m.sides[s].candidate(j, r) && sameNetwork(p, q)
}

// facing counts the ports, of all ranks, in which the cable of a port can end.
func (m matcher) facing(r, i int) int {
	n := 0
	for s := range m.sides {
		if s == r {
			continue
		}
		for j := range m.sides[s].ports {
			if m.mayFace(r, i, s, j) {
				n++
			}
		}
	}
	return n
}

var errNoCommonNetwork = errors.New("no port of one side has an address in the network of a port of the other")

// byAddress pairs ports whose addresses lie in one network. Where a port could
// face several, the cable cannot be told from the addresses: on Ethernet that
// does not matter, since a switch connects all; on Thunderbolt it does, because
// guessing wrong can hang the driver.
func (m matcher) byAddress() ([]railPlan, error) {
	var plans []railPlan
	unclear := errNoCommonNetwork
	usedLow, usedHigh := map[int]bool{}, map[int]bool{}
	for i, l := range m.sides[m.low].ports {
		for j, h := range m.sides[m.high].ports {
			if !m.mayFace(m.low, i, m.high, j) {
				continue
			}
			if l.Link == provider.LinkThunderbolt && (m.facing(m.low, i) > 1 || m.facing(m.high, j) > 1) {
				unclear = fmt.Errorf("addresses do not tell which Thunderbolt ports face each other (%s and %s may): give each cable a network of its own, or name the cables", l.Device, h.Device)
				continue
			}
			if !usedLow[i] && !usedHigh[j] {
				usedLow[i], usedHigh[j] = true, true
				plans = append(plans, railPlan{low: i, high: j})
			}
		}
	}
	if len(plans) == 0 {
		return nil, unclear
	}
	return plans, nil
}

// sameNetwork compares by the longer of the two prefixes. Where neither is
// known, a /24 is the usual one.
func sameNetwork(a, b portInfo) bool {
	if a.Link != b.Link {
		return false
	}
	bits := max(a.Bits, b.Bits)
	if bits == 0 {
		bits = 24
	}
	p, err := a.Address.Prefix(bits)
	return err == nil && p.Contains(b.Address)
}
