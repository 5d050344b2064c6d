package fake_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"daisy/rdma/verbs/abi"
	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/fake/cfake"
	"daisy/rdma/verbs/provider"
)

// childLibrary makes a process of this test a node of its own, with that library.
const childLibrary = "DAISY_FAKE_CHILD"

// TestChildNode is the node "b" in a process of its own: it tells its endpoint
// on standard output, reads the peer's from standard input, and sends back what
// comes, plus one, until its input ends.
func TestChildNode(t *testing.T) {
	if os.Getenv(childLibrary) == "" {
		t.Skip("is run by the tests of processes")
	}
	l, err := abi.LoadPath(library)
	require.NoError(t, err)
	ctx, err := l.Open(right.Device)
	require.NoError(t, err)
	s := sideOf(t, ctx, usual)
	require.NoError(t, json.NewEncoder(os.Stdout).Encode(s.endpoint()))
	var peer provider.Endpoint
	in := json.NewDecoder(os.Stdin)
	require.NoError(t, in.Decode(&peer))
	s.connect(peer)
	for i := range uint64(4) {
		require.NoError(t, s.recv(i, high+int(i)*8192, 8192))
	}
	require.NoError(t, json.NewEncoder(os.Stdout).Encode("ready"))
	var ended atomic.Bool
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, in.Buffered())
		_, _ = io.Copy(io.Discard, os.Stdin)
		ended.Store(true)
	}()
	wcs := make([]provider.WC, 1)
	for !ended.Load() {
		n, err := s.cq.Poll(wcs)
		require.NoError(t, err)
		if n == 0 || wcs[0].Opcode == provider.OpSend {
			continue
		}
		require.Equal(t, provider.WCSuccess, wcs[0].Status)
		at := int(wcs[0].ID) * 8192
		v := binary.LittleEndian.Uint64(s.mem[high+at+8184:])
		binary.LittleEndian.PutUint64(s.mem[at+8184:], v+1)
		require.NoError(t, s.recv(wcs[0].ID, high+at, 8192))
		require.NoError(t, s.send(wcs[0].ID, at, 8192))
	}
	require.NoError(t, s.recv(99, high, 8192)) // one more post, which may be the last
}

// child is that process.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
	err bytes.Buffer
}

func startChild(t *testing.T, f *cfake.Fabric) *child {
	c := &child{Cmd: exec.Command(os.Args[0], "-test.run=^TestChildNode$")}
	c.Env = append(append(os.Environ(), f.Environment("b")...), childLibrary+"="+f.Path())
	c.Stderr = &c.err
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.out = json.NewDecoder(out)
	c.in, err = c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		if c.ProcessState == nil {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	return c
}

// decode reads what the child tells, or says why it told nothing.
func (c *child) decode(t *testing.T, v any) {
	if err := c.out.Decode(v); err != nil {
		_ = c.Process.Kill()
		_ = c.Wait()
		t.Fatal(err, c.err.String())
	}
}

// meet connects a to the child.
func (c *child) meet(t *testing.T, a *side) {
	var peer provider.Endpoint
	c.decode(t, &peer)
	require.NoError(t, json.NewEncoder(c.in).Encode(a.endpoint()))
	a.connect(peer)
	var ready string
	c.decode(t, &ready)
}

func processes(t *testing.T) (*cfake.Fabric, *side) {
	f, err := cfake.Make(library)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	wired(t, f, fake.Options{})
	return f, newSide(t, f, left, usual)
}

// TestProcesses: two nodes in two processes; one is killed; its queue pairs go
// to the process after it.
func TestProcesses(t *testing.T) {
	f, a := processes(t)
	for lap := range provider.AppleMaxQP + 2 {
		c := startChild(t, f)
		c.meet(t, a)
		for i := range uint64(50) {
			require.NoError(t, a.recv(i, high, 8192))
			binary.LittleEndian.PutUint64(a.mem[8184:], i)
			require.NoError(t, a.send(i, 0, 8192))
			seen := map[provider.Opcode]bool{}
			for len(seen) < 2 {
				w := a.one()
				require.Equal(t, provider.WCSuccess, w.Status)
				require.Equal(t, i, w.ID)
				seen[w.Opcode] = true
			}
			require.Equal(t, i+1, binary.LittleEndian.Uint64(a.mem[high+8184:]))
		}
		credit := uint64(4) // receives that the child has posted
		if lap == 0 {       // an orderly end
			credit++
			require.NoError(t, c.in.Close())
			require.NoError(t, c.Wait(), c.err.String())
		} else {
			require.NoError(t, c.Process.Kill())
			require.Error(t, c.Wait())
		}
		require.NoError(t, a.recv(1, high, 8192))
		for i := range credit { // is good still
			require.NoError(t, a.send(i, 0, 8192))
			a.good(i, provider.OpSend)
		}
		require.NoError(t, a.send(9, 0, 8192))
		a.silent()
		require.NoError(t, a.qp.Destroy())
		a.qp = a.newQP(usual)
	}
}

// TestFault: a post after the cable was pulled can be the end of the process,
// as it has been with Apple's provider.
func TestFault(t *testing.T) {
	f, a := processes(t)
	c := startChild(t, f)
	c.meet(t, a)
	require.NoError(t, f.PullFaulting(right))
	require.NoError(t, c.in.Close())
	require.Error(t, c.Wait())
	require.Contains(t, c.err.String(), "SIGSEGV")
}
