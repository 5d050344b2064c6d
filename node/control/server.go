package control

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"daisy/node/identity"
	"daisy/rdma/tcp"
)

const (
	maxHandshakes    = 64
	maxConns         = 256
	maxGroups        = 8 // memberships and refusals at once
	maxPairs         = 4 // pairings, of which all but one are refused
	handshakeTimeout = 5 * time.Second
)

// ServerConfig says where to listen and who answers. The callbacks are called
// from several goroutines.
type ServerConfig struct {
	Identity *identity.Identity
	Listen   string // "host:port"; ":0" for any free port on all addresses
	Log      *slog.Logger
	// Hello is what this node says of itself to that node, a stranger perhaps.
	Hello func(to identity.ID) Hello
	// Admit is asked before anything but a greeting or a pairing is taken from a
	// node; its error, in words, refuses it.
	Admit func(from identity.ID) error
	// Pair serves one pairing's stream, a stranger's as a rule, like Group.
	Pair func(ctx context.Context, s *Lines)
	// Group serves one membership's stream; it may take as long as that lasts,
	// and must return when ctx ends. The stream is void afterwards.
	Group func(ctx context.Context, from identity.ID, s *Stream)
	// Data is asked whether a data connection is expected. If so it returns a
	// function that is called once: with the connection, then the caller's, or
	// with nil when it broke before that. A nil function refuses.
	Data func(from identity.ID, p Preamble) func(net.Conn)
}

// Server answers other nodes on one port until Close.
type Server struct {
	config   ServerConfig
	listener net.Listener
	http     *http.Server
	queue    *queue
	conns    conns         // all but the data connections that were handed over
	slots    chan struct{} // handshakes
	groups   chan struct{}
	pairs    chan struct{}

	sendTimeout time.Duration
	work        sync.WaitGroup // every goroutine

	mu     sync.Mutex // guards closed and adding to work
	closed bool
}

// Listen opens the port and begins to answer.
func Listen(config ServerConfig) (*Server, error) {
	listener, err := (&net.ListenConfig{KeepAliveConfig: keepAlive}).Listen(context.Background(), "tcp", config.Listen)
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, listener: listener, slots: make(chan struct{}, maxHandshakes), groups: make(chan struct{}, maxGroups), pairs: make(chan struct{}, maxPairs), sendTimeout: sendTimeout}
	s.queue = &queue{addr: listener.Addr(), conns: make(chan net.Conn), closed: make(chan struct{})}
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+helloPath, s.hello)
	mux.HandleFunc("POST "+groupPath, s.group)
	mux.HandleFunc("POST "+pairPath, s.pair)
	s.http = &http.Server{
		Handler:           mux,
		Protocols:         protocols,
		HTTP2:             &http2,
		TLSConfig:         config.Identity.ServerConfig(controlProtocol),
		ReadHeaderTimeout: handshakeTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(config.Log.Handler(), slog.LevelDebug),
	}
	s.work.Go(func() { _ = s.http.Serve(s.queue) })
	s.work.Go(s.accept)
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() netip.AddrPort {
	return s.listener.Addr().(*net.TCPAddr).AddrPort()
}

// Close stops listening, ends all connections but the data connections that
// were taken over, and waits until no callback runs.
func (s *Server) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		s.listener.Close()
		s.queue.close()
		s.http.Close()
		s.conns.close()
	}
	s.work.Wait()
}

// begin notes a goroutine for Close to wait for, unless Close was called.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Add(1)
	}
	return !s.closed
}

// accept takes connections and shakes hands with each on its own goroutine.
func (s *Server) accept() {
	for wait := time.Duration(0); ; {
		raw, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, say: try again, not at once
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			s.config.Log.Warn("accepting a connection", "error", err)
			select {
			case <-time.After(wait):
			case <-s.queue.closed:
			}
			continue
		}
		wait = 0
		select {
		case s.slots <- struct{}{}:
		default:
			raw.Close() // whoever it is, it dials again
			continue
		}
		if s.conns.len() >= maxConns {
			<-s.slots
			raw.Close()
			continue
		}
		conn := s.conns.add(tcp.Wire(raw))
		s.work.Go(func() { // accept itself is still in work
			s.greet(conn)
			<-s.slots
		})
	}
}

// greet shakes hands and passes the connection on by its protocol.
func (s *Server) greet(raw net.Conn) {
	raw.SetDeadline(time.Now().Add(handshakeTimeout))
	conn := tls.Server(raw, s.config.Identity.ServerConfig(controlProtocol, dataProtocol))
	if err := conn.Handshake(); err != nil {
		s.config.Log.Debug("handshake", "from", raw.RemoteAddr(), "error", err)
		raw.Close()
		return
	}
	if conn.ConnectionState().NegotiatedProtocol == dataProtocol {
		if err := s.data(conn, raw); err != nil {
			s.config.Log.Debug("data connection", "from", raw.RemoteAddr(), "error", err)
			conn.Close()
		}
		return
	}
	raw.SetDeadline(time.Time{})
	if !s.queue.put(conn) {
		conn.Close()
	}
}

// data reads the preamble and hands the connection over. The handshake's
// deadline still holds.
func (s *Server) data(conn *tls.Conn, raw net.Conn) error {
	from, err := identity.PeerID(conn.ConnectionState())
	if err != nil {
		return err
	}
	var b [preambleBytes]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil {
		return err
	}
	p, err := parsePreamble(b)
	if err != nil {
		return err
	}
	take := s.config.Data(from, p)
	if take == nil {
		_, err := conn.Write([]byte{dataRefused})
		return errors.Join(errors.New("not expected"), err)
	}
	if _, err := conn.Write([]byte{dataAccepted}); err != nil {
		take(nil)
		return err
	}
	raw.SetDeadline(time.Time{})
	raw.(*member).release()
	take(conn)
	return nil
}

func (s *Server) hello(w http.ResponseWriter, r *http.Request) {
	to, err := identity.PeerID(*r.TLS)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	h := s.config.Hello(to)
	h.Version = Protocol
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(h) // the asker may have gone away
}

func (s *Server) group(w http.ResponseWriter, r *http.Request) {
	from, err := identity.PeerID(*r.TLS)
	if err == nil {
		err = s.config.Admit(from)
	}
	if err != nil {
		http.Error(w, CleanReason(err.Error()), http.StatusForbidden)
		return
	}
	s.serve(w, r, s.groups, "too many invitations at once", func(lines *Lines) {
		s.config.Group(r.Context(), from, &Stream{lines})
	})
}

func (s *Server) pair(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, s.pairs, "too many pairings at once", func(lines *Lines) {
		s.config.Pair(r.Context(), lines)
	})
}

// serve makes lines of a request, which holds one of the slots meanwhile.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, slots chan struct{}, full string, handle func(*Lines)) {
	if !s.begin() { // http.Server.Close does not wait for handlers
		return
	}
	defer s.work.Done()
	peer, err := identity.PeerKey(*r.TLS)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	default:
		http.Error(w, full, http.StatusServiceUnavailable)
		return
	}
	control := http.NewResponseController(w)
	write := func(line []byte) error {
		if err := control.SetWriteDeadline(time.Now().Add(s.sendTimeout)); err != nil {
			return err
		}
		_, err := w.Write(line)
		if err == nil {
			err = control.Flush()
		}
		// HTTP/2 resets the stream at the deadline also when nothing is being
		// written then.
		return errors.Join(err, control.SetWriteDeadline(time.Time{}))
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := write(nil); err != nil {
		return
	}
	// Receive fails at once; Send has its deadline, and what was sent must not
	// be lost. The other side notices when Group returns.
	abort := func() { _ = control.SetReadDeadline(time.Unix(1, 0)) }
	lines := newLines(peer, r.Body, write, abort)
	defer lines.void()
	handle(lines)
}

// queue is the net.Listener through which control connections, already past
// their handshake, reach the HTTP server.
type queue struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (q *queue) put(c net.Conn) bool {
	select {
	case q.conns <- c:
		return true
	case <-q.closed:
		return false
	}
}

// Accept implements net.Listener.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (q *queue) Close() error {
	q.close()
	return nil
}

func (q *queue) close() { q.once.Do(func() { close(q.closed) }) }

// Addr implements net.Listener.
func (q *queue) Addr() net.Addr { return q.addr }
