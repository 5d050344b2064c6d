package discovery

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"daisy/node/identity"
)

const (
	serviceType = "_daisy._tcp"
	domain      = "local"
	serviceName = serviceType + "." + domain + "."
	hostPrefix  = "daisy-"

	cacheFlush = 1 << 15 // of a record's class; RFC 6762, 10.2

	maxPacket    = 9000 // RFC 6762, 17
	maxRecords   = 64
	maxInstances = 4
	maxAddresses = 16
)

// heard is what one packet says of one node: an announcement with bare
// addresses, or a goodbye, of which only the ID counts.
type heard struct {
	Announcement
	ips     []netip.Addr
	port    uint16
	goodbye bool
}

// instance gathers one instance's records while a packet is read.
type instance struct {
	id      identity.ID
	txt     []string
	port    uint16
	target  string
	goodbye bool
}

// parsePacket reads an mDNS response. It keeps the nodes that are announced
// whole in this one packet, as ours always are, and drops the rest; an error
// means the packet itself is broken or too large.
func parsePacket(packet []byte) ([]heard, error) {
	if len(packet) > maxPacket {
		return nil, fmt.Errorf("more than %d bytes", maxPacket)
	}
	var p dnsmessage.Parser
	header, err := p.Start(packet)
	if err != nil {
		return nil, err
	}
	if !header.Response || header.OpCode != 0 {
		return nil, nil
	}
	if err := p.SkipAllQuestions(); err != nil {
		return nil, err
	}
	r := reader{addrs: map[string][]netip.Addr{}}
	for _, section := range []struct {
		header func() (dnsmessage.ResourceHeader, error)
		skip   func() error
	}{
		{p.AnswerHeader, p.SkipAnswer},
		{p.AuthorityHeader, p.SkipAuthority},
		{p.AdditionalHeader, p.SkipAdditional},
	} {
		for {
			h, err := section.header()
			if errors.Is(err, dnsmessage.ErrSectionDone) {
				break
			}
			if err != nil {
				return nil, err
			}
			if r.nRecords++; r.nRecords > maxRecords {
				return nil, fmt.Errorf("more than %d records", maxRecords)
			}
			if err := r.record(&p, h, section.skip); err != nil {
				return nil, err
			}
		}
	}
	return r.heard(), nil
}

type reader struct {
	nRecords  int
	instances []*instance
	addrs     map[string][]netip.Addr // by lower-case host name; at most maxRecords
}

func (r *reader) record(p *dnsmessage.Parser, h dnsmessage.ResourceHeader, skip func() error) error {
	if h.Class&^cacheFlush != dnsmessage.ClassINET {
		return skip()
	}
	name := strings.ToLower(h.Name.String())
	switch h.Type {
	case dnsmessage.TypePTR:
		ptr, err := p.PTRResource()
		if err != nil {
			return err
		}
		if name == serviceName && h.TTL == 0 {
			if i := r.instance(strings.ToLower(ptr.PTR.String())); i != nil {
				i.goodbye = true
			}
		}
	case dnsmessage.TypeSRV:
		srv, err := p.SRVResource()
		if err != nil {
			return err
		}
		if i := r.instance(name); i != nil {
			i.port, i.target = srv.Port, strings.ToLower(srv.Target.String())
			i.goodbye = i.goodbye || h.TTL == 0
		}
	case dnsmessage.TypeTXT:
		txt, err := p.TXTResource()
		if err != nil {
			return err
		}
		if i := r.instance(name); i != nil {
			i.txt = txt.TXT
		}
	case dnsmessage.TypeA:
		a, err := p.AResource()
		if err != nil {
			return err
		}
		r.addrs[name] = append(r.addrs[name], netip.AddrFrom4(a.A))
	case dnsmessage.TypeAAAA:
		aaaa, err := p.AAAAResource()
		if err != nil {
			return err
		}
		r.addrs[name] = append(r.addrs[name], netip.AddrFrom16(aaaa.AAAA))
	default:
		return skip()
	}
	return nil
}

// instance returns the entry for a service instance's lower-case name, or nil
// when it is none of ours or one too many.
func (r *reader) instance(name string) *instance {
	label, ok := strings.CutSuffix(name, "."+serviceName)
	if !ok {
		return nil
	}
	id, err := identity.ParseID(label)
	if err != nil {
		return nil
	}
	for _, i := range r.instances {
		if i.id == id {
			return i
		}
	}
	if len(r.instances) == maxInstances {
		return nil
	}
	i := &instance{id: id}
	r.instances = append(r.instances, i)
	return i
}

func (r *reader) heard() []heard {
	var found []heard
	for _, i := range r.instances {
		if i.goodbye {
			found = append(found, heard{Announcement: Announcement{ID: i.id}, goodbye: true})
			continue
		}
		a, err := parseTXT(i.txt)
		ips := r.addrs[i.target]
		if err != nil || a.ID != i.id || i.port == 0 || i.target != hostName(i.id) || len(ips) == 0 {
			continue
		}
		found = append(found, heard{Announcement: a, ips: ips[:min(len(ips), maxAddresses)], port: i.port})
	}
	return found
}
