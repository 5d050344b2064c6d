package discovery

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/grandcat/zeroconf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/ipv4"

	"daisy/node/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newID(t testing.TB) identity.ID {
	t.Helper()
	i, err := identity.Load(t.TempDir())
	require.NoError(t, err)
	return i.ID()
}

// listener is a Service with what it was told.
type listener struct {
	*Service
	id    identity.ID
	found chan Announcement
	lost  chan identity.ID
}

func start(t *testing.T, name string, port uint16) *listener {
	t.Helper()
	l := &listener{id: newID(t), found: make(chan Announcement, 64), lost: make(chan identity.ID, 64)}
	s, err := Start(Config{
		ID: l.id, Name: name, Protocol: 7, Port: port, Interfaces: []string{"lo"}, Log: slog.New(slog.DiscardHandler),
		Only: netip.MustParseAddr("127.0.0.1"),
		Found: func(a Announcement) {
			select {
			case l.found <- a:
			default:
			}
		},
		Lost: func(id identity.ID) {
			select {
			case l.lost <- id:
			default:
			}
		},
	})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	l.Service = s
	return l
}

// waitFor takes announcements until one is of id.
func (l *listener) waitFor(t *testing.T, id identity.ID) Announcement {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case a := <-l.found:
			assert.NotEqual(t, l.id, a.ID, "a node does not find itself")
			if a.ID == id {
				return a
			}
		case <-deadline:
			t.Fatal("not found")
		}
	}
}

func TestNodesFindEachOtherOnLoopback(t *testing.T) {
	const name = `Ann’s "Studio" \ 100% ✿`
	a, b := start(t, name, 1111), start(t, "b", 2222)
	assert.Equal(t, Announcement{ID: a.id, Name: name, Protocol: 7,
		Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1111")}}, b.waitFor(t, a.id))
	assert.Equal(t, "b", a.waitFor(t, b.id).Name)
	c := start(t, "late", 3333)
	assert.Equal(t, "late", a.waitFor(t, c.id).Name)
	assert.Equal(t, name, c.waitFor(t, a.id).Name)

	b.Close()
	deadline := time.After(10 * time.Second)
	for gone := identity.ID(""); gone != b.id; {
		select {
		case gone = <-a.lost:
		case <-deadline:
			t.Fatal("no goodbye")
		}
	}
	b.Close()
}

func TestStartRefusesAnUnknownInterface(t *testing.T) {
	_, err := Start(Config{ID: newID(t), Port: 1, Interfaces: []string{"nosuch0"}})
	require.ErrorContains(t, err, "nosuch0")
}

// response is a node's announcement, which extra may spoil.
func response(t testing.TB, a Announcement, ip string, extra func(*dnsmessage.Message)) []byte {
	t.Helper()
	packet, err := announcement(a, []netip.Addr{netip.MustParseAddr(ip)}, 4444, lifetime)
	require.NoError(t, err)
	if extra == nil {
		return packet
	}
	var m dnsmessage.Message
	require.NoError(t, m.Unpack(packet))
	extra(&m)
	packet, err = m.Pack()
	require.NoError(t, err)
	return packet
}

// TestZeroconfFindsUs: an independent implementation reads what we say.
func TestZeroconfFindsUs(t *testing.T) {
	l := start(t, `Ann's Studio`, 1111)
	loopback, err := net.InterfaceByName("lo")
	require.NoError(t, err)
	resolver, err := zeroconf.NewResolver(zeroconf.SelectIfaces([]net.Interface{*loopback}), zeroconf.SelectIPTraffic(zeroconf.IPv4))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	entries := make(chan *zeroconf.ServiceEntry)
	require.NoError(t, resolver.Browse(ctx, serviceType, domain, entries))
	found := false
	for e := range entries { // closed when ctx ends
		if e.Instance != string(l.id) {
			continue // another test's node on this machine
		}
		found = true
		assert.Equal(t, 1111, e.Port)
		assert.Equal(t, hostName(l.id), e.HostName)
		assert.Equal(t, txtRecord(Announcement{ID: l.id, Name: `Ann's Studio`, Protocol: 7}), e.Text)
		require.Len(t, e.AddrIPv4, 1)
		assert.Equal(t, "127.0.0.1", e.AddrIPv4[0].String())
		cancel()
	}
	cancel()
	assert.True(t, found)
}

func TestQueriesAboutUs(t *testing.T) {
	id, other := newID(t), newID(t)
	ask := func(name string, kind dnsmessage.Type, class dnsmessage.Class) []byte {
		m := dnsmessage.Message{Questions: []dnsmessage.Question{
			{Name: dnsmessage.MustNewName("else.local."), Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET},
			{Name: dnsmessage.MustNewName(name), Type: kind, Class: class},
		}}
		packet, err := m.Pack()
		require.NoError(t, err)
		return packet
	}
	for _, c := range []struct {
		packet []byte
		want   bool
	}{
		{ask(serviceName, dnsmessage.TypePTR, dnsmessage.ClassINET), true},
		{ask("_Daisy._TCP.Local.", dnsmessage.TypePTR, dnsmessage.ClassINET|1<<15), true},
		{ask(typesName, dnsmessage.TypePTR, dnsmessage.ClassINET), true},
		{ask(instanceName(id), dnsmessage.TypeSRV, dnsmessage.ClassINET), true},
		{ask(instanceName(id), dnsmessage.TypeALL, dnsmessage.ClassANY), true},
		{ask(hostName(id), dnsmessage.TypeAAAA, dnsmessage.ClassINET), true},
		{ask(instanceName(other), dnsmessage.TypeSRV, dnsmessage.ClassINET), false},
		{ask(serviceName, dnsmessage.TypeSRV, dnsmessage.ClassINET), false},
		{ask(serviceName, dnsmessage.TypePTR, dnsmessage.ClassCHAOS), false},
		{response(t, Announcement{ID: id, Name: "a", Protocol: 1}, "127.0.0.1", nil), false},
		{[]byte("x"), false},
	} {
		assert.Equal(t, c.want, isAbout(c.packet, id), "%q", c.packet)
	}
	packet, err := query()
	require.NoError(t, err)
	assert.True(t, isAbout(packet, id))
}

func TestAnswersAreLimited(t *testing.T) {
	var l link
	now := time.Now()
	n := 0
	for range 10 * maxAnswers {
		if l.mayAnswer(now) {
			n++
		}
	}
	assert.Equal(t, maxAnswers, n)
	assert.True(t, l.mayAnswer(now.Add(time.Second)))
}

// TestHostileAnnouncements sends packets that must change nothing and then a
// good one, over real sockets.
func TestHostileAnnouncements(t *testing.T) {
	victim := start(t, "victim", 1111)
	good := Announcement{ID: newID(t), Name: "good", Protocol: 1}
	badIDs := map[identity.ID]bool{victim.id: true}
	other := func() Announcement {
		a := Announcement{ID: newID(t), Name: "bad", Protocol: 1}
		badIDs[a.ID] = true
		return a
	}
	bad := [][]byte{
		[]byte("not DNS"),
		response(t, good, "127.0.0.1", nil)[:40],
		response(t, other(), "8.8.8.8", nil), // off the link
		response(t, Announcement{ID: victim.id, Name: "you", Protocol: 1}, "127.0.0.1", nil),
		response(t, other(), "127.0.0.1", func(m *dnsmessage.Message) {
			m.Answers[2].Body.(*dnsmessage.TXTResource).TXT[1] = "name=a\u202eb" // text that runs backwards
		}),
		response(t, other(), "127.0.0.1", func(m *dnsmessage.Message) { m.Answers[1].Body.(*dnsmessage.SRVResource).Port = 0 }),
		response(t, other(), "127.0.0.1", func(m *dnsmessage.Message) {
			m.Answers[2].Body.(*dnsmessage.TXTResource).TXT[0] = "id=" + string(good.ID) // someone else's
		}),
		response(t, other(), "127.0.0.1", func(m *dnsmessage.Message) { m.Response = false }),
		response(t, other(), "127.0.0.1", func(m *dnsmessage.Message) {
			for range maxRecords {
				m.Additionals = append(m.Additionals, m.Answers[3])
			}
		}),
		response(t, other(), "127.0.0.1", func(m *dnsmessage.Message) {
			m.Answers[2].Body.(*dnsmessage.TXTResource).TXT = make([]string, 60_000)
		}),
	}
	loopback, err := net.InterfaceByName("lo")
	require.NoError(t, err)
	// It sends from port 5353, like a real responder.
	b := &link{networks: []network{{iface: *loopback}}, hear: func(heard, network) {}}
	require.NoError(t, b.open())
	defer b.close()
	send := func(packet []byte) {
		_, err := b.v4.WriteTo(packet, &ipv4.ControlMessage{IfIndex: loopback.Index}, group4)
		require.NoError(t, err)
	}
	for range 50 {
		for _, packet := range bad {
			send(packet)
		}
	}
	deadline := time.After(10 * time.Second)
	for {
		send(response(t, good, "127.0.0.1", nil)) // UDP: a full buffer may drop some
		select {
		case a := <-victim.found:
			require.NotContains(t, badIDs, a.ID)
			if a.ID != good.ID {
				continue // another test's node on this machine
			}
			assert.Equal(t, []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:4444")}, a.Addrs)
			return
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			t.Fatal("the good one was not heard")
		}
	}
}

func TestParsePacketCaps(t *testing.T) {
	a := Announcement{ID: newID(t), Name: "n", Protocol: 1}
	_, err := parsePacket(make([]byte, maxPacket+1))
	require.ErrorContains(t, err, "bytes")

	many := response(t, a, "127.0.0.1", func(m *dnsmessage.Message) {
		for range 20 {
			m.Answers = append(m.Answers, m.Answers[3])
		}
	})
	found, err := parsePacket(many)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Len(t, found[0].ips, maxAddresses)

	crowd := response(t, a, "127.0.0.1", func(m *dnsmessage.Message) {
		for range 10 {
			r := m.Answers[2]
			r.Header.Name = dnsmessage.MustNewName(string(newID(t)) + "." + serviceName)
			m.Answers = append(m.Answers, r)
		}
	})
	found, err = parsePacket(crowd)
	require.NoError(t, err)
	require.Len(t, found, 1, "the whole one among the halves")
}

func TestTXT(t *testing.T) {
	id := string(newID(t))
	for name, txt := range map[string][]string{
		"nothing":        nil,
		"no id":          {"name=a", "v=1"},
		"no name":        {"id=" + id, "v=1"},
		"no version":     {"id=" + id, "name=a"},
		"bad id":         {"id=" + id[1:], "name=a", "v=1"},
		"twice":          {"id=" + id, "name=a", "name=b", "v=1"},
		"not UTF-8":      {"id=" + id, "name=\xff", "v=1"},
		"control":        {"id=" + id, "name=a\nb", "v=1"},
		"long":           {"id=" + id, "name=" + strings.Repeat("a", maxName+1), "v=1"},
		"version 0":      {"id=" + id, "name=a", "v=0"},
		"version 01":     {"id=" + id, "name=a", "v=01"},
		"version huge":   {"id=" + id, "name=a", "v=99999999999999999999"},
		"many strings":   append(make([]string, 20), "id="+id, "name=a", "v=1"),
		"spaces outside": {"id=" + id, "name= a", "v=1"},
	} {
		_, err := parseTXT(txt)
		assert.Error(t, err, name)
	}
	a, err := parseTXT([]string{"later=x", "v=12", "name=✿", "id=" + id, "novalue", "later=y"})
	require.NoError(t, err)
	assert.Equal(t, Announcement{ID: identity.ID(id), Name: "✿", Protocol: 12}, a)
}

func TestSuitable(t *testing.T) {
	const up = net.FlagUp | net.FlagMulticast | net.FlagBroadcast
	for name, c := range map[string]struct {
		flags net.Flags
		want  bool
	}{
		"en0": {up, true}, "bridge0": {up, true}, "eth0": {up, true}, "wlp3s0": {up, true}, "tundra": {up, true},
		"en5": {net.FlagMulticast, false}, "sl0": {net.FlagUp, false}, "lo": {up | net.FlagLoopback, false},
		"utun4": {up | net.FlagPointToPoint, false}, "en9": {up | net.FlagPointToPoint, false},
		"utun3": {up, false}, "tun0": {up, false}, "tap1": {up, false}, "tailscale0": {up, false}, "wg0": {up, false},
		"ipsec0": {up, false}, "ppp0": {up, false}, "awdl0": {up, false}, "llw0": {up, false}, "docker0": {up, false},
	} {
		assert.Equal(t, c.want, suitable(net.Interface{Name: name, Flags: c.flags}), name)
	}
}

func TestReachable(t *testing.T) {
	en0 := network{iface: net.Interface{Index: 1, Name: "en0"}, prefixes: []netip.Prefix{netip.MustParsePrefix("192.168.1.5/24")}}
	en1 := network{iface: net.Interface{Index: 2, Name: "en1"}, prefixes: []netip.Prefix{netip.MustParsePrefix("169.254.9.9/16"), netip.MustParsePrefix("fd00::1/64")}}
	for in, want := range map[string]string{
		"192.168.1.77": "192.168.1.77", "::ffff:192.168.1.77": "192.168.1.77", "169.254.1.1": "169.254.1.1",
		"fd00::2": "fd00::2", "fe80::1": "fe80::1%en0", "100.64.0.1": "", "127.0.0.1": "", "0.0.0.0": "", "224.0.0.251": "", "ff02::1": "",
	} {
		got, ok := reachable(netip.MustParseAddr(in), en0, []network{en0, en1})
		if assert.Equal(t, want != "", ok, in) && ok {
			assert.Equal(t, want, got.String())
		}
	}
}

func TestAddresses(t *testing.T) {
	two := []network{
		{prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/8"), netip.MustParsePrefix("fe80::1/64")}},
		{prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/8")}},
	}
	ten := netip.MustParseAddr("10.0.0.2")
	assert.Equal(t, []netip.Addr{ten, netip.MustParseAddr("fe80::1")}, addresses(two, netip.Addr{}))
	assert.Equal(t, []netip.Addr{ten}, addresses(two, ten))
	assert.Empty(t, addresses(two, netip.MustParseAddr("10.0.0.3")))
}
