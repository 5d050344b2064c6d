package tcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"daisy/rdma"

	"github.com/stretchr/testify/require"
)

func frame(h header, payload ...byte) []byte {
	var b [headerSize]byte
	h.put(&b)
	return append(b[:], payload...)
}

var someTag = rdma.Tag{Op: rdma.OpBroadcast, Root: 3, Seq: 0x01020304, Bytes: 1 << 40}

func TestHeaderLayout(t *testing.T) {
	require.Equal(t, []byte{'D', 'S', 'Y', 'f', 1, 4, 3, 0, 4, 3, 2, 1, 5, 0, 0, 0,
		0, 0, 0, 0, 0, 1, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0},
		frame(header{kind: kindData, tag: someTag, chunk: 5, left: 5}))
	require.Equal(t, []byte("DAISYtcp\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00"),
		hello{version: 1, from: 2, to: 3, worldSize: 4, epoch: 5}.append(nil))
}

func TestMalformedHeaders(t *testing.T) {
	good := header{kind: kindData, tag: someTag, chunk: 8, left: 8}
	for _, c := range []struct {
		name   string
		mangle func(h *header, b []byte)
	}{
		{"magic", func(_ *header, b []byte) { b[0]++ }},
		{"kind zero", func(h *header, _ []byte) { h.kind = 0 }},
		{"kind unknown", func(h *header, _ []byte) { h.kind = 4 }},
		{"payload shorter than it could be", func(h *header, _ []byte) { h.chunk = 7 }},
		{"payload longer than the message", func(h *header, _ []byte) { h.left = 7 }},
		{"payload above the limit", func(h *header, _ []byte) { h.chunk, h.left = maxChunk+1, 1<<50 }},
		{"empty payload of a message", func(h *header, _ []byte) { h.chunk = 0 }},
		{"bye with payload", func(h *header, _ []byte) { *h = header{kind: kindBye, chunk: 1} }},
		{"bye with tag", func(h *header, _ []byte) { *h = header{kind: kindBye, tag: someTag} }},
		{"long abort", func(h *header, _ []byte) { *h = header{kind: kindAbort, chunk: rdma.MaxAbort + 1} }},
		{"abort with tag", func(h *header, _ []byte) { *h = header{kind: kindAbort, tag: someTag} }},
		{"abort of a message", func(h *header, _ []byte) { *h = header{kind: kindAbort, left: 1} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := good
			c.mangle(&h, make([]byte, headerSize))
			b := frame(h)
			c.mangle(&h, b)
			_, err := parseHeader((*[headerSize]byte)(b))
			require.Error(t, err)
		})
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(frame(header{kind: kindData, tag: someTag, chunk: 5, left: 5}))
	f.Add(frame(header{kind: kindData}))
	f.Add(frame(header{kind: kindAbort, chunk: 20}))
	f.Add(frame(header{kind: kindBye}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headerSize {
			return
		}
		b = b[:headerSize]
		h, err := parseHeader((*[headerSize]byte)(b))
		if err == nil && !bytes.Equal(frame(h), b) {
			t.Fatalf("%x became %x", b, frame(h))
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add(hello{version: 1, from: 2, to: 3, worldSize: 4, epoch: 5}.append(nil))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < helloSize {
			return
		}
		b = b[:helloSize]
		h, err := parseHello((*[helloSize]byte)(b))
		if err == nil && !bytes.Equal(h.append(nil), b) {
			t.Fatalf("%x became %x", b, h.append(nil))
		}
	})
}

// script is a connection on which the peer has said all it will say.
type script struct {
	net.Conn
	r io.Reader
}

func (s script) Read(p []byte) (int, error)       { return s.r.Read(p) }
func (s script) Write(p []byte) (int, error)      { return len(p), nil }
func (s script) SetReadDeadline(time.Time) error  { return nil }
func (s script) SetWriteDeadline(time.Time) error { return nil }

// scripted is rank 0 of two, with a peer that has said stream, as through TLS
// or, if real, over a connection of its own.
func scripted(tb testing.TB, stream []byte, real bool) (*Transport, *peer) {
	p := newPeer(1, script{r: bytes.NewReader(stream)}, nil, &net.TCPConn{})
	if real {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(tb, err)
		defer l.Close()
		theirs, err := net.Dial("tcp", l.Addr().String())
		require.NoError(tb, err)
		ours, err := l.Accept()
		require.NoError(tb, err)
		_, err = theirs.Write(stream) // what does not fit is refused before
		require.NoError(tb, err)
		require.NoError(tb, theirs.Close())
		c := Wire(ours).(*Conn)
		c.taken = true
		p = newPeer(1, c, c, c.TCPConn)
	}
	t := &Transport{Ending: rdma.NewEnding(), peers: []*peer{nil, p}}
	watch, err := watchHangups(nil)
	require.NoError(tb, err)
	t.watch = watch
	t.wg.Go(t.watchPeers)
	tb.Cleanup(func() { t.Close() })
	return t, p
}

// FuzzStream lets a peer send anything: a receiver that expects messages of n
// bytes gets messages that are in the stream, in order, and then one error.
func FuzzStream(f *testing.F) {
	tag := rdma.Tag{Op: rdma.OpSend}
	data := func(left uint64, payload ...byte) []byte {
		return frame(header{kind: kindData, tag: tag, chunk: uint32(len(payload)), left: left}, payload...)
	}
	notice := rdma.AppendAbort(nil, 1, errors.New("enough"))
	f.Add(uint16(3), append(data(3, 1, 2, 3), frame(header{kind: kindBye})...))
	f.Add(uint16(4), append(data(4, 1), data(3, 2, 3, 4)...))
	f.Add(uint16(0), append(data(0), frame(header{kind: kindAbort, chunk: uint32(len(notice))}, notice...)...))
	f.Add(uint16(2), data(1<<62, make([]byte, 2)...))
	f.Add(uint16(500), data(500, 1))
	f.Add(uint16(40), append(data(40, make([]byte, 40)...), frame(header{kind: kindAbort, chunk: uint32(len(notice))}, notice...)...))
	f.Fuzz(func(t *testing.T, n uint16, stream []byte) {
		if len(stream) > 128<<10 { // more than is buffered
			return
		}
		for _, real := range []bool{false, true} {
			fuzzStream(t, tag, int(n), stream, real)
		}
	})
}

func fuzzStream(t *testing.T, tag rdma.Tag, n int, stream []byte, real bool) {
	tr, p := scripted(t, stream, real)
	dst := make([]byte, n)
	at := 0
	for {
		if err := tr.recv(p, tag, dst); err != nil {
			if err != tr.Err() {
				t.Fatalf("%v is not the cause %v", err, tr.Err())
			}
			break
		}
		// Every byte received stands where the frames say.
		for rest := dst; ; {
			chunk := binary.LittleEndian.Uint32(stream[at+12:])
			at += headerSize
			if !bytes.Equal(rest[:chunk], stream[at:at+int(chunk)]) {
				t.Fatal("other bytes than were sent")
			}
			at += int(chunk)
			if rest = rest[chunk:]; len(rest) == 0 {
				break
			}
		}
	}
	// The same stream, found after the peer has hung up.
	tr, p = scripted(t, stream, real)
	tr.readLast(p)
	if tr.Err() == nil && !p.left.Load() {
		t.Fatal("a peer that hung up is neither gone nor lost")
	}
	if len(p.buf) > 2*len(stream)+readBuffer {
		t.Fatalf("%d bytes kept of %d", len(p.buf), len(stream))
	}
}
