package control

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"daisy/node/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newIdentity(t testing.TB) *identity.Identity {
	t.Helper()
	i, err := identity.Load(t.TempDir())
	require.NoError(t, err)
	return i
}

// serve starts a server; what a test does not set refuses.
func serve(t *testing.T, own *identity.Identity, config ServerConfig) *Server {
	t.Helper()
	config.Identity, config.Listen, config.Log = own, "127.0.0.1:0", slog.New(slog.DiscardHandler)
	if config.Hello == nil {
		config.Hello = func(identity.ID) Hello { return Hello{ID: own.ID(), Name: "served", Cores: 2} }
	}
	if config.Admit == nil {
		config.Admit = func(identity.ID) error { return nil }
	}
	if config.Pair == nil {
		config.Pair = func(context.Context, *Lines) {}
	}
	if config.Data == nil {
		config.Data = func(identity.ID, Preamble) func(net.Conn) { return nil }
	}
	s, err := Listen(config)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func dialer(t *testing.T, addrs ...netip.AddrPort) (*Dialer, identity.ID) {
	t.Helper()
	own := newIdentity(t)
	d := NewDialer(own, func(identity.ID) []netip.AddrPort { return addrs })
	t.Cleanup(d.Close)
	return d, own.ID()
}

func timeout(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestHello(t *testing.T) {
	own := newIdentity(t)
	s := serve(t, own, ServerConfig{})
	// An address where nothing listens comes first.
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	deadAddr := dead.Addr().(*net.TCPAddr).AddrPort()
	dead.Close()
	d, _ := dialer(t, deadAddr, s.Addr())
	for range 2 {
		h, err := d.Hello(timeout(t), own.ID())
		require.NoError(t, err)
		assert.Equal(t, Hello{Version: Protocol, ID: own.ID(), Name: "served", Cores: 2}, h)
	}
	assert.Equal(t, 1, d.conns.len(), "one connection serves all")
}

func TestHelloFromTheWrongNode(t *testing.T) {
	impostor, meant := newIdentity(t), newIdentity(t)
	asked := false
	s := serve(t, impostor, ServerConfig{Hello: func(identity.ID) Hello { asked = true; return Hello{} }})
	d, _ := dialer(t, s.Addr())
	_, err := d.Hello(timeout(t), meant.ID())
	require.ErrorIs(t, err, identity.ErrWrongNode)
	assert.False(t, asked, "nothing is said to the wrong node")
}

// TestTheRightNodeAmongImpostors: an address that another node took over does
// not stop the right one from being found.
func TestTheRightNodeAmongImpostors(t *testing.T) {
	impostor, right := newIdentity(t), newIdentity(t)
	d, _ := dialer(t, serve(t, impostor, ServerConfig{}).Addr(), serve(t, right, ServerConfig{}).Addr())
	h, err := d.Hello(timeout(t), right.ID())
	require.NoError(t, err)
	assert.Equal(t, right.ID(), h.ID)
}

func TestNoAddress(t *testing.T) {
	d, _ := dialer(t)
	_, err := d.Hello(timeout(t), newIdentity(t).ID())
	require.ErrorContains(t, err, "no address")
}

func TestGroupStreamsBothWays(t *testing.T) {
	own := newIdentity(t)
	var wantFrom identity.ID
	ended := make(chan error, 1)
	s := serve(t, own, ServerConfig{Group: func(ctx context.Context, from identity.ID, s *Stream) {
		assert.Equal(t, wantFrom, from)
		for {
			m, err := s.Receive()
			if err != nil {
				ended <- err
				return
			}
			if !assert.NoError(t, s.Send(Message{Progress: &Progress{Loaded: int64(m.Start.Epoch), Total: 100}})) {
				return
			}
			if m.Start.Epoch == 3 {
				return // the end of this side ends the stream
			}
		}
	}})
	d, id := dialer(t, s.Addr())
	wantFrom = id
	stream, err := d.Group(timeout(t), own.ID())
	require.NoError(t, err)
	for i := range 4 {
		require.NoError(t, stream.Send(Message{Start: &Start{Epoch: uint64(i)}}))
		m, err := stream.Receive()
		require.NoError(t, err)
		assert.EqualValues(t, i, m.Progress.Loaded)
	}
	_, err = stream.Receive()
	require.ErrorIs(t, err, io.EOF)
	stream.Abort()

	stream, err = d.Group(timeout(t), own.ID())
	require.NoError(t, err)
	require.NoError(t, stream.Send(Message{Start: &Start{Epoch: 1}}))
	_, err = stream.Receive() // Group runs
	require.NoError(t, err)
	stream.Abort() // the end of the other side
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-timeout(t).Done():
		t.Fatal("the server did not notice")
	}
	_, err = stream.Receive()
	require.Error(t, err)
	require.Error(t, stream.Send(Message{Start: &Start{}}))
}

// TestASilentGroupLives: between messages a stream may be silent for longer than
// one may take.
func TestASilentGroupLives(t *testing.T) {
	own := newIdentity(t)
	result := make(chan error, 1)
	s := serve(t, own, ServerConfig{Group: func(_ context.Context, _ identity.ID, s *Stream) {
		if !assert.NoError(t, s.Send(Message{Ready: &Ready{}})) {
			return
		}
		_, err := s.Receive()
		result <- err
	}})
	s.sendTimeout = 20 * time.Millisecond
	d, _ := dialer(t, s.Addr())
	stream, err := d.Group(timeout(t), own.ID())
	require.NoError(t, err)
	_, err = stream.Receive()
	require.NoError(t, err)
	select {
	case err := <-result:
		t.Fatalf("it ended by itself: %v", err)
	case <-time.After(10 * s.sendTimeout):
	}
	require.NoError(t, stream.Send(Message{Start: &Start{}}))
	require.NoError(t, <-result)
	stream.Abort()
}

func TestTooManyGroups(t *testing.T) {
	own := newIdentity(t)
	s := serve(t, own, ServerConfig{Group: func(_ context.Context, _ identity.ID, s *Stream) { _, _ = s.Receive() }})
	for range 2 { // other dialers are limited together
		d, _ := dialer(t, s.Addr())
		for range maxGroups / 2 {
			stream, err := d.Group(timeout(t), own.ID())
			require.NoError(t, err)
			t.Cleanup(stream.Abort)
		}
	}
	d, _ := dialer(t, s.Addr())
	_, err := d.Group(timeout(t), own.ID())
	require.ErrorContains(t, err, "too many invitations")
	_, err = d.Hello(timeout(t), own.ID())
	require.NoError(t, err)
}

func TestCloseEndsStreams(t *testing.T) {
	own := newIdentity(t)
	var running sync.WaitGroup
	running.Add(1)
	s := serve(t, own, ServerConfig{Group: func(ctx context.Context, _ identity.ID, s *Stream) {
		running.Done()
		<-ctx.Done()
	}})
	d, _ := dialer(t, s.Addr())
	stream, err := d.Group(timeout(t), own.ID())
	require.NoError(t, err)
	running.Wait()
	s.Close()
	_, err = stream.Receive()
	require.Error(t, err)
	stream.Abort()
	_, err = d.Hello(timeout(t), own.ID())
	require.Error(t, err)
}

// TestGroupRefusesBadBodies sends bodies that are no messages over a real
// stream.
func TestGroupRefusesBadBodies(t *testing.T) {
	own := newIdentity(t)
	got := make(chan error, 1)
	s := serve(t, own, ServerConfig{Group: func(_ context.Context, _ identity.ID, s *Stream) {
		_, err := s.Receive()
		got <- err
	}})
	d, _ := dialer(t, s.Addr())
	for body, says := range map[string]string{
		"\n":                                  "no message",
		"[1]\n":                               "no message",
		"{}\n":                                "version 0",
		`{"v":3,"start":{}}` + "\n":           "version 3",
		`{"v":2}` + "\n":                      "0 contents",
		`{"v":2,"start":{},"end":{}}` + "\n":  "2 contents",
		`{"v":2,"start":{"epoch":-1}}` + "\n": "no message",
		strings.Repeat("[", maxMessage+1):     "more than",
		`{"v":2,"start":{"beat_ports":[` + strings.Repeat("1,", maxMembers) + "1]}}\n": "heartbeats of 33 ranks",
		`{"v":2,"start":{"beat_ports":[65536]}}` + "\n":                                "no message",
	} {
		stream, err := d.Group(timeout(t), own.ID())
		require.NoError(t, err)
		require.NoError(t, stream.write([]byte(body)))
		select {
		case err := <-got:
			require.ErrorContains(t, err, says, body[:min(40, len(body))])
		case <-timeout(t).Done():
			t.Fatal("no answer")
		}
		stream.Abort()
	}
}

func TestData(t *testing.T) {
	own := newIdentity(t)
	taken := make(chan net.Conn, 1)
	var wantFrom identity.ID
	s := serve(t, own, ServerConfig{Data: func(from identity.ID, p Preamble) func(net.Conn) {
		if p.Epoch != 7 {
			return nil
		}
		assert.Equal(t, Preamble{Epoch: 7, From: 2, To: 1}, p)
		assert.Equal(t, wantFrom, from)
		return func(c net.Conn) { taken <- c }
	}})
	d, id := dialer(t)
	wantFrom = id
	addr := []netip.AddrPort{s.Addr()}
	_, err := d.DialData(timeout(t), own.ID(), addr, Preamble{Epoch: 8, From: 2, To: 1})
	require.ErrorContains(t, err, "expects no such connection")
	_, err = d.DialData(timeout(t), newIdentity(t).ID(), addr, Preamble{Epoch: 7})
	require.ErrorIs(t, err, identity.ErrWrongNode)

	here, err := d.DialData(timeout(t), own.ID(), addr, Preamble{Epoch: 7, From: 2, To: 1})
	require.NoError(t, err)
	there := <-taken
	d.Close()
	s.Close() // data connections are no longer theirs
	_, err = here.Write([]byte("x"))
	require.NoError(t, err)
	var b [1]byte
	_, err = there.Read(b[:])
	require.NoError(t, err)
	here.Close()
	there.Close()
}

func TestServerDropsStrangersAndNonsense(t *testing.T) {
	own := newIdentity(t)
	s := serve(t, own, ServerConfig{})
	raw, err := net.Dial("tcp", s.Addr().String())
	require.NoError(t, err)
	defer raw.Close()
	_, err = raw.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, raw)
	require.NoError(t, err, "the server hangs up")

	// No preamble at all, but a key: refused in time, and others are served.
	stranger := newIdentity(t)
	conn, err := tls.Dial("tcp", s.Addr().String(), stranger.ClientConfig(own.ID(), dataProtocol))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write(bytes.Repeat([]byte("x"), preambleBytes))
	require.NoError(t, err)
	_, err = io.ReadAll(conn)
	require.NoError(t, err)

	d, _ := dialer(t, s.Addr())
	_, err = d.Hello(timeout(t), own.ID())
	require.NoError(t, err)
}

func TestDialerClosed(t *testing.T) {
	own := newIdentity(t)
	s := serve(t, own, ServerConfig{})
	d, _ := dialer(t, s.Addr())
	d.Close()
	d.Close()
	_, err := d.Hello(timeout(t), own.ID())
	require.Error(t, err)
}

func TestParseHello(t *testing.T) {
	id := newIdentity(t).ID()
	for text, says := range map[string]string{
		"":   "no greeting",
		"{}": "calls itself",
		fmt.Sprintf(`{"v":1,"id":%q,"name":"a\nb"}`, id):         "not fit",
		fmt.Sprintf(`{"v":0,"id":%q,"name":"a"}`, id):            "negative",
		fmt.Sprintf(`{"v":1,"id":%q,"name":"a","cores":-1}`, id): "negative",
		strings.Repeat(" ", maxHello+1):                          "more than",
	} {
		_, err := parseHello([]byte(text), id)
		assert.ErrorContains(t, err, says, text)
	}
	h, err := parseHello(fmt.Appendf(nil, `{"v":9,"id":%q,"name":"a","later":true}`, id), id)
	require.NoError(t, err)
	assert.Equal(t, 9, h.Version)
}

func invite(t testing.TB) Invite {
	return Invite{
		Epoch: 5, WithinMS: 1000,
		Model: Model{Name: "m", Fingerprint: strings.Repeat("ab", 32), Bytes: 1, Architecture: "llama"},
		Members: []Member{
			{ID: newIdentity(t).ID(), Name: "a", Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1")}},
			{ID: newIdentity(t).ID(), Name: "b"},
		},
	}
}

func TestInviteChecks(t *testing.T) {
	good := invite(t)
	line, err := encode(Message{Invite: &good})
	require.NoError(t, err)
	m, err := decode(line)
	require.NoError(t, err)
	assert.Equal(t, good, *m.Invite)

	for name, spoil := range map[string]func(*Invite){
		"no epoch":        func(i *Invite) { i.Epoch = 0 },
		"alone":           func(i *Invite) { i.Members = i.Members[:1] },
		"too many":        func(i *Invite) { i.Members = make([]Member, maxMembers+1) },
		"bad id":          func(i *Invite) { i.Members[1].ID = "x" },
		"twice":           func(i *Invite) { i.Members[1].ID = i.Members[0].ID },
		"bad name":        func(i *Invite) { i.Members[1].Name = "a\u202eb" },
		"no name":         func(i *Invite) { i.Members[1].Name = "" },
		"many addresses":  func(i *Invite) { i.Members[1].Addrs = make([]netip.AddrPort, maxAddrs+1) },
		"no port":         func(i *Invite) { i.Members[1].Addrs = []netip.AddrPort{netip.MustParseAddrPort("1.1.1.1:0")} },
		"no time":         func(i *Invite) { i.WithinMS = 0 },
		"context":         func(i *Invite) { i.Context = -1 },
		"cache":           func(i *Invite) { i.Cache = -1 },
		"sequences":       func(i *Invite) { i.Sequences = 1 << 30 },
		"fingerprint":     func(i *Invite) { i.Model.Fingerprint = "ab" },
		"negative length": func(i *Invite) { i.Model.Bytes = -1 },
	} {
		bad := good
		bad.Members = append([]Member(nil), good.Members...)
		spoil(&bad)
		assert.Error(t, bad.check(), name)
	}
}

// TestMessagesOfBothAges: who knows no heartbeat says nothing of one, and ignores
// what is said.
func TestMessagesOfBothAges(t *testing.T) {
	m, err := decode([]byte(`{"v":2,"start":{"epoch":7}}`))
	require.NoError(t, err)
	assert.Equal(t, Start{Epoch: 7}, *m.Start)
	line, err := encode(Message{Answer: &Answer{Accept: true}})
	require.NoError(t, err)
	assert.NotContains(t, string(line), "beat")
	_, err = decode([]byte(`{"v":2,"start":{"epoch":7,"from a later version":[1]}}`))
	require.NoError(t, err)
}

// TestLargestInviteFits: the limits on members, names and addresses keep within
// the limit on messages.
func TestLargestInviteFits(t *testing.T) {
	i := invite(t)
	i.Members = nil
	for range maxMembers {
		m := Member{ID: newIdentity(t).ID(), Name: strings.Repeat("é", 31)}
		for range maxAddrs {
			m.Addrs = append(m.Addrs, netip.MustParseAddrPort("[fe80:1111:2222:3333:4444:5555:6666:7777%bridge100]:65535"))
		}
		i.Members = append(i.Members, m)
	}
	line, err := encode(Message{Invite: &i})
	require.NoError(t, err)
	_, err = decode(line)
	require.NoError(t, err)
}

func TestCleanReason(t *testing.T) {
	assert.Equal(t, "a b c", CleanReason(" a\nb\x00\t\u202ec\xff"))
	assert.LessOrEqual(t, len(CleanReason(strings.Repeat("é", 10_000))), maxReason)
}

// FuzzMessage: whatever line arrives, it is an error or a message that survives
// being sent and received again.
func FuzzMessage(f *testing.F) {
	i := invite(f)
	for _, m := range []Message{
		{Invite: &i}, {Answer: &Answer{Reason: "no"}}, {Start: &Start{Epoch: 1}}, {Start: &Start{Epoch: 1, BeatPorts: []uint16{0, 65535}}}, {Answer: &Answer{Accept: true, BeatPort: 9}}, {Progress: &Progress{1, 2}},
		{Ready: &Ready{3}}, {Running: &Running{[]int64{1, 2}}}, {End: &End{EndLost, i.Members[0].ID, "gone"}},
	} {
		line, err := encode(m)
		require.NoError(f, err)
		f.Add(line)
	}
	f.Add([]byte(`{"v":1,"invite":{"members":[{"addrs":["x"]}]}}`))
	f.Add([]byte(`{"v":1e300}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := decode(line)
		if err != nil {
			return
		}
		again, err := encode(m)
		if err != nil {
			require.Greater(t, len(line)*6, maxMessage, "only escapes make it longer")
			return
		}
		back, err := decode(again)
		require.NoError(t, err)
		require.Equal(t, m, back)
	})
}

// FuzzHello: a greeting is an error or sound.
func FuzzHello(f *testing.F) {
	id := newIdentity(f).ID()
	f.Add([]byte(`{}`))
	f.Add(fmt.Appendf(nil, `{"v":1,"id":%q,"name":"a","cores":8,"memory_bytes":1}`, id))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := parseHello(data, id)
		if err == nil {
			require.Equal(t, id, h.ID)
			require.NotEmpty(t, h.Name)
			require.Positive(t, h.Version)
		}
	})
}

func TestPreamble(t *testing.T) {
	p := Preamble{Epoch: 1<<63 + 5, From: 3, To: 1}
	var b [preambleBytes]byte
	copy(b[:], p.append(nil))
	got, err := parsePreamble(b)
	require.NoError(t, err)
	assert.Equal(t, p, got)
	b[0] = 'x'
	_, err = parsePreamble(b)
	require.Error(t, err)
	var version *VersionError
	assert.True(t, errors.As(fmt.Errorf("x: %w", &VersionError{2}), &version))
}
