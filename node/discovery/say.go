package discovery

import (
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"daisy/node/identity"
)

const (
	typesName    = "_services._dns-sd._udp." + domain + "." // RFC 6763, 9
	lifetime     = 120                                      // of records, in seconds
	maxQuestions = 16
)

func instanceName(id identity.ID) string { return string(id) + "." + serviceName }
func hostName(id identity.ID) string     { return hostPrefix + string(id) + "." + domain + "." }

// query is the packet that asks all nodes to announce themselves.
func query() ([]byte, error) {
	name, err := dnsmessage.NewName(serviceName)
	if err != nil {
		return nil, err
	}
	m := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET}}}
	return m.Pack()
}

// announcement is the packet that says all of a node on one network, or, with a
// lifetime of 0, goodbye. The host name is ours alone: a second responder for
// the machine's real name would make macOS rename itself. All names contain the
// hash of a key, so nobody is asked whether they are taken (RFC 6762, 8.1).
func announcement(a Announcement, ips []netip.Addr, port uint16, lifetime uint32) ([]byte, error) {
	var names [4]dnsmessage.Name
	for i, text := range []string{serviceName, instanceName(a.ID), hostName(a.ID), typesName} {
		name, err := dnsmessage.NewName(text)
		if err != nil {
			return nil, err
		}
		names[i] = name
	}
	service, instance, host, types := names[0], names[1], names[2], names[3]
	// The records that are ours alone replace what others remember of them.
	own := func(name dnsmessage.Name) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET | cacheFlush, TTL: lifetime}
	}
	shared := func(name dnsmessage.Name) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: lifetime}
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{Response: true, Authoritative: true})
	b.EnableCompression()
	if err := b.StartAnswers(); err != nil {
		return nil, err
	}
	if err := b.PTRResource(shared(service), dnsmessage.PTRResource{PTR: instance}); err != nil {
		return nil, err
	}
	if err := b.SRVResource(own(instance), dnsmessage.SRVResource{Port: port, Target: host}); err != nil {
		return nil, err
	}
	if err := b.TXTResource(own(instance), dnsmessage.TXTResource{TXT: txtRecord(a)}); err != nil {
		return nil, err
	}
	for _, ip := range ips {
		var err error
		if ip.Is4() {
			err = b.AResource(own(host), dnsmessage.AResource{A: ip.As4()})
		} else {
			err = b.AAAAResource(own(host), dnsmessage.AAAAResource{AAAA: ip.As16()})
		}
		if err != nil {
			return nil, err
		}
	}
	if lifetime > 0 { // the type lives on when this node goes
		if err := b.PTRResource(shared(types), dnsmessage.PTRResource{PTR: service}); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}

// isAbout says whether packet is a query whose answer is the node's
// announcement.
func isAbout(packet []byte, id identity.ID) bool {
	var p dnsmessage.Parser
	header, err := p.Start(packet)
	if err != nil || header.Response || header.OpCode != 0 {
		return false
	}
	for range maxQuestions {
		q, err := p.Question()
		if err != nil {
			return false // the end, or nonsense
		}
		const unicast = 1 << 15 // RFC 6762, 5.4; we answer to all anyhow
		if class := q.Class &^ unicast; class != dnsmessage.ClassINET && class != dnsmessage.ClassANY {
			continue
		}
		types := []dnsmessage.Type{dnsmessage.TypeALL}
		switch strings.ToLower(q.Name.String()) {
		case serviceName, typesName:
			types = append(types, dnsmessage.TypePTR)
		case instanceName(id):
			types = append(types, dnsmessage.TypeSRV, dnsmessage.TypeTXT)
		case hostName(id):
			types = append(types, dnsmessage.TypeA, dnsmessage.TypeAAAA)
		default:
			continue
		}
		for _, t := range types {
			if q.Type == t {
				return true
			}
		}
	}
	return false
}
