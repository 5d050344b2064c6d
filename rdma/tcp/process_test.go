package tcp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"daisy/rdma"
	"daisy/rdma/tcp"
	"daisy/rdma/tcp/tcptest"
	"daisy/rdma/transporttest"

	"github.com/stretchr/testify/require"
)

// The test binary is also the program of ranks in processes of their own: with
// a childTask in its environment it is one of them.
const childEnv = "DAISY_RDMA_TEST_CHILD"

type childTask struct {
	Rank   int
	World  int
	Dial   []string // addresses of ranks below this one
	Listen int      // how many ranks above this one will connect
	Bytes  int
	Times  int               // all-reduces; 0 means until something ends the group
	TLS    *tcptest.Identity // nil for plain TCP
}

func TestMain(m *testing.M) {
	task := os.Getenv(childEnv)
	if task == "" {
		os.Exit(m.Run())
	}
	if err := child(task); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child joins the group and all-reduces. It prints its address when it listens,
// "running" once it is in the middle, and the median latency in nanoseconds.
func child(task string) error {
	var c childTask
	if err := json.Unmarshal([]byte(task), &c); err != nil {
		return err
	}
	conns := make([]net.Conn, c.World)
	for r, address := range c.Dial {
		conn, err := net.DialTimeout("tcp", address, 10*time.Second)
		if err != nil {
			return err
		}
		conns[r] = conn
	}
	if c.Listen > 0 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Println(l.Addr())
		for r := range c.Listen { // one at a time in the tests that use it
			if conns[c.Rank+1+r], err = l.Accept(); err != nil {
				return err
			}
		}
		l.Close()
	}
	if c.TLS != nil {
		client, server, err := c.TLS.Configs()
		if err != nil {
			return err
		}
		for r, conn := range conns {
			switch {
			case r < c.Rank:
				conns[r] = tls.Client(tcp.Wire(conn), client)
			case r > c.Rank:
				conns[r] = tls.Server(tcp.Wire(conn), server)
			}
		}
	}
	t, err := tcp.New(c.Rank, c.World, 1, conns)
	if err != nil {
		return err
	}
	g := rdma.NewGroup(t, 1)
	defer g.Close()
	if err := transporttest.Repeat(g, c.Bytes, 100, nil); err != nil {
		return err
	}
	fmt.Println("running")
	if c.Times == 0 {
		for {
			if err := transporttest.Repeat(g, c.Bytes, 100, nil); err != nil {
				return err
			}
		}
	}
	latency := make([]time.Duration, c.Times)
	if err := transporttest.Repeat(g, c.Bytes, c.Times, latency); err != nil {
		return err
	}
	fmt.Println(transporttest.Median(latency).Nanoseconds())
	return g.Barrier(context.Background())
}

// spawn starts a rank, on one core where the system has taskset.
func spawn(tb testing.TB, c childTask) (*exec.Cmd, *bufio.Scanner) {
	tb.Helper()
	task, err := json.Marshal(c)
	require.NoError(tb, err)
	args := []string{os.Args[0]}
	if taskset, err := exec.LookPath("taskset"); err == nil && c.Times > 0 {
		args = append([]string{taskset, "-c", strconv.Itoa(c.Rank)}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childEnv+"="+string(task))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, cmd.Start())
	tb.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

// TestProcessKilled kills a rank's process with SIGKILL in the middle of
// collectives. Ranks 0 and 1 are here; both must blame rank 2.
func TestProcessKilled(t *testing.T) {
	for _, n := range []int{64, 16 << 10, 4 << 20} {
		t.Run(fmt.Sprintf("bytes=%d", n), func(t *testing.T) {
			c := childTask{Rank: 2, World: 3, Bytes: n}
			var listeners [2]net.Listener
			for r := range listeners {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				defer l.Close()
				listeners[r] = l
				c.Dial = append(c.Dial, l.Addr().String())
			}
			cmd, lines := spawn(t, c)
			conns := [][]net.Conn{make([]net.Conn, 3), make([]net.Conn, 3)}
			var err error
			conns[0][1], conns[1][0], err = tcptest.Pair()
			require.NoError(t, err)
			for r, l := range listeners {
				conns[r][2], err = l.Accept()
				require.NoError(t, err)
			}
			type result struct {
				rank int
				err  error
				at   time.Time
			}
			results := make(chan result, 2)
			for r := range conns {
				go func() {
					tr, err := tcp.New(r, 3, 1, conns[r])
					if err == nil {
						g := rdma.NewGroup(tr, 1)
						defer g.Close()
						for err == nil {
							err = transporttest.Repeat(g, n, 100, nil)
						}
					}
					results <- result{r, err, time.Now()}
				}()
			}
			require.True(t, lines.Scan())
			require.Equal(t, "running", lines.Text())
			killed := time.Now()
			require.NoError(t, cmd.Process.Kill())
			for range conns {
				res := <-results
				require.ErrorIs(t, res.err, rdma.ErrPeerLost)
				var lost *rdma.PeerLostError
				require.True(t, errors.As(res.err, &lost))
				require.Equal(t, 2, lost.Rank, "%v", res.err)
				noticed := res.at.Sub(killed)
				t.Logf("rank %d noticed after %v: %v", res.rank, noticed, res.err)
				require.Less(t, noticed, 5*time.Second) // 500 ms on a quiet machine
			}
		})
	}
}

// twoProcesses is the median latency of an all-reduce between two processes.
func twoProcesses(b *testing.B, id *tcptest.Identity, n, times int) float64 {
	_, first := spawn(b, childTask{Rank: 0, World: 2, Listen: 1, Bytes: n, Times: times, TLS: id})
	require.True(b, first.Scan())
	_, second := spawn(b, childTask{Rank: 1, World: 2, Dial: []string{first.Text()}, Bytes: n, Times: times, TLS: id})
	for _, s := range []*bufio.Scanner{first, second} {
		require.True(b, s.Scan())
		require.Equal(b, "running", s.Text())
	}
	require.True(b, first.Scan())
	ns, err := strconv.ParseFloat(first.Text(), 64)
	require.NoError(b, err)
	return ns
}

// BenchmarkProcesses compares two pinned processes with the bare exchange of
// testdata/exchange.c, interleaved. ns/op is the median of nine medians, C-ns/op
// that of the C program, and the ratio the median of nine ratios: of latencies
// for the short message, of bandwidths (higher is better) for the long one.
func BenchmarkProcesses(b *testing.B) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		b.Skip("no C compiler")
	}
	yardstick := b.TempDir() + "/exchange"
	out, err := exec.Command(cc, "-O2", "-o", yardstick, "testdata/exchange.c").CombinedOutput()
	require.NoError(b, err, "%s", out)
	identity, err := tcptest.NewIdentity()
	require.NoError(b, err)
	for _, n := range []int{16 << 10, 8 << 20} {
		for _, secure := range []bool{false, true} {
			name, id := "tcp", (*tcptest.Identity)(nil)
			if secure {
				name, id = "tcp+tls", &identity
			}
			b.Run(fmt.Sprintf("%s/ranks=2/bytes=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					compare(b, yardstick, id, n)
				}
			})
		}
	}
}

// compare runs the C program and two ranks in turns, nine times.
func compare(b *testing.B, yardstick string, id *tcptest.Identity, n int) {
	times := max(100, min(10000, 1<<30/n))
	var ours, bares, ratios []float64
	for range 9 {
		out, err := exec.Command(yardstick, strconv.Itoa(n), strconv.Itoa(times)).Output()
		require.NoError(b, err)
		bare, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		require.NoError(b, err)
		ns := twoProcesses(b, id, n, times)
		ours, bares = append(ours, ns), append(bares, bare)
		if n <= 64<<10 {
			ratios = append(ratios, ns/bare)
		} else {
			ratios = append(ratios, bare/ns)
		}
	}
	b.Logf("ratios %.2f", ratios)
	for _, s := range [][]float64{ours, bares, ratios} {
		slices.Sort(s)
	}
	b.ReportMetric(ours[4], "ns/op")
	b.ReportMetric(bares[4], "C-ns/op")
	if n <= 64<<10 {
		b.ReportMetric(ratios[4], "latency-to-C")
	} else {
		b.ReportMetric(ratios[4], "bandwidth-to-C")
	}
}
