package relay

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers every connection with what it sends, until the listener is closed.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// Everything arrives, in order, whole, and no sooner than it may.
func TestRelay(t *testing.T) {
	const delay = 3 * time.Millisecond
	r, err := New(echo(t), delay)
	require.NoError(t, err)
	defer r.Close()
	c, err := net.Dial("tcp", r.Address())
	require.NoError(t, err)
	defer c.Close()
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	start := time.Now()
	go func() {
		_, _ = c.Write(sent)
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	first := make([]byte, 1)
	_, err = io.ReadFull(c, first)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(start), 2*delay)
	rest, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, sent, append(first, rest...))
}

// Close ends connections in use, and one that nobody answers is closed.
func TestRelayCloses(t *testing.T) {
	r, err := New(echo(t), time.Hour)
	require.NoError(t, err)
	c, err := net.Dial("tcp", r.Address())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte("lost"))
	require.NoError(t, err)
	r.Close()
	_, err = io.ReadAll(c)
	_ = err // a reset, or an end
	_, err = net.Dial("tcp", r.Address())
	require.Error(t, err)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := l.Addr().String()
	require.NoError(t, l.Close())
	r, err = New(nobody, 0)
	require.NoError(t, err)
	defer r.Close()
	c, err = net.Dial("tcp", r.Address())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
}
