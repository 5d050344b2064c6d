package heartbeat

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// The test binary is also the program of ranks in processes of their own, and
// one that only burns a processor.
const (
	rankEnv = "DAISY_HEARTBEAT_TEST_RANK"
	burnEnv = "DAISY_HEARTBEAT_TEST_BURN"
)

func TestMain(m *testing.M) {
	if os.Getenv(burnEnv) != "" {
		go burn()
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test
		os.Exit(0)
	}
	if rank := os.Getenv(rankEnv); rank != "" {
		if err := childMain(rank); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// burn takes a processor for as long as the process lives.
func burn() {
	for x := uint64(0); ; x++ {
	}
}

// A childTask is what a rank in a process of its own is told on its input, once
// all sockets are there.
type childTask struct {
	World int
	Ports []uint16 // by rank
	Burn  int      // goroutines that never rest
}

// childMain prints the port of its socket, then one line for each loss. It ends
// when its input does, with a line of what it has seen.
func childMain(rankText string) error {
	rank, err := strconv.Atoi(rankText)
	if err != nil {
		return err
	}
	conn, port, err := openSocket()
	if err != nil {
		return err
	}
	fmt.Println(port)
	in := json.NewDecoder(os.Stdin)
	var task childTask
	if err := in.Decode(&task); err != nil {
		return err
	}
	m, err := Start(conn, Config{Epoch: 9, Rank: rank, Peers: realPeers(rank, task.Ports), Lost: func(rank int, reason error) {
		fmt.Printf("lost %d: %v\n", rank, reason)
	}})
	if err != nil {
		return err
	}
	for range task.Burn {
		go burn()
	}
	_, _ = io.Copy(io.Discard, io.MultiReader(in.Buffered(), os.Stdin))
	for _, s := range m.Stats() {
		fmt.Printf("stats %+v\n", s)
	}
	return m.Close()
}

func openSocket() (*net.UDPConn, uint16, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, 0, err
	}
	return conn, conn.LocalAddr().(*net.UDPAddr).AddrPort().Port(), nil
}

func realPeers(rank int, ports []uint16) []Peer {
	peers := peersOf(rank, len(ports))
	for i, p := range peers {
		peers[i].Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), ports[p.Rank])
	}
	return peers
}

// A child is a rank in a process of its own.
type child struct {
	*exec.Cmd
	rank  int
	port  uint16
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func startChild(tb testing.TB, rank int) *child {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), rankEnv+"="+strconv.Itoa(rank))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(tb, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, cmd.Start())
	tb.Cleanup(func() {
		stdin.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	c := &child{Cmd: cmd, rank: rank, stdin: stdin, lines: bufio.NewScanner(stdout)}
	port, err := strconv.ParseUint(c.line(tb), 10, 16)
	require.NoError(tb, err)
	c.port = uint16(port)
	return c
}

func (c *child) line(tb testing.TB) string {
	tb.Helper()
	require.True(tb, c.lines.Scan(), "rank %d ended", c.rank)
	return c.lines.Text()
}

func (c *child) tell(tb testing.TB, task childTask) {
	tb.Helper()
	require.NoError(tb, json.NewEncoder(c.stdin).Encode(task))
}

// finish ends a child and returns all that it printed.
func (c *child) finish(tb testing.TB) string {
	tb.Helper()
	c.stdin.Close()
	var b strings.Builder
	for c.lines.Scan() {
		fmt.Fprintln(&b, c.lines.Text())
	}
	require.NoError(tb, c.Wait())
	return b.String()
}

// burners starts so many processes that burn a processor each.
func burners(tb testing.TB, n int) {
	tb.Helper()
	for range n {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), burnEnv+"=1")
		stdin, err := cmd.StdinPipe()
		require.NoError(tb, err)
		require.NoError(tb, cmd.Start())
		tb.Cleanup(func() {
			stdin.Close()
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
}

// patience is for what takes half a second on an idle machine.
const patience = 5 * time.Second

type loss struct {
	rank   int
	reason error
	at     time.Time
}

// A realGroup is rank 0 in this process and the others in their own.
type realGroup struct {
	*Monitor
	lost     chan loss
	children []*child // by rank, nil at 0
}

// startGroup waits until rank 0 hears all others.
func startGroup(tb testing.TB, world, burn int) *realGroup {
	tb.Helper()
	conn, port, err := openSocket()
	require.NoError(tb, err)
	g := &realGroup{lost: make(chan loss, world), children: make([]*child, world)}
	ports := []uint16{port}
	for r := 1; r < world; r++ {
		g.children[r] = startChild(tb, r)
		ports = append(ports, g.children[r].port)
	}
	g.Monitor, err = Start(conn, Config{Epoch: 9, Rank: 0, Peers: realPeers(0, ports),
		Lost: func(rank int, reason error) { g.lost <- loss{rank, reason, time.Now()} }})
	require.NoError(tb, err)
	tb.Cleanup(func() { g.Close() })
	for _, c := range g.children[1:] {
		c.tell(tb, childTask{World: world, Ports: ports, Burn: burn})
	}
	require.Eventually(tb, func() bool {
		for _, s := range g.Stats() {
			if !s.Heard || s.RTT == 0 {
				return false
			}
		}
		return true
	}, 4*patience, 10*time.Millisecond, "rank 0 hears all")
	return g
}

func (g *realGroup) wait(tb testing.TB) loss {
	tb.Helper()
	select {
	case l := <-g.lost:
		return l
	case <-time.After(patience):
		tb.Fatalf("no loss noticed within %v: %+v", patience, g.Stats())
		return loss{}
	}
}

// TestProcesses: a rank that is killed, and one that is stopped, are noticed by
// both others; nobody else is.
func TestProcesses(t *testing.T) {
	for _, way := range hurts {
		t.Run(way.name, func(t *testing.T) {
			g := startGroup(t, 3, 0)
			begun := time.Now()
			require.NoError(t, way.hurt(g.children[2].Process))
			l := g.wait(t)
			require.Equal(t, 2, l.rank)
			t.Logf("noticed after %v: %v", l.at.Sub(begun), l.reason)
			require.Contains(t, g.children[1].line(t), "lost 2: no heartbeat for")
			require.Contains(t, g.children[1].finish(t), "Rank:0 Heard:true Lost:false")
		})
	}
}

// TestFullLoad: with all processors taken several times over, by goroutines in
// the ranks themselves and by other processes, nobody is reported; a rank that
// is stopped still is.
func TestFullLoad(t *testing.T) {
	for name, load := range map[string]struct{ burn, processes int }{
		"goroutines": {4 * runtime.NumCPU(), 0},
		"processes":  {0, 4 * runtime.NumCPU()},
	} {
		t.Run(name, func(t *testing.T) {
			g := startGroup(t, 3, load.burn)
			burners(t, load.processes)
			timer := time.NewTimer(loadTime())
			defer timer.Stop()
			select {
			case l := <-g.lost:
				t.Fatalf("rank %d was reported: %v; %+v", l.rank, l.reason, g.Stats())
			case <-timer.C:
			}
			for _, s := range g.Stats() {
				t.Logf("%+v", s)
			}
			begun := time.Now()
			require.NoError(t, hurts[1].hurt(g.children[2].Process))
			l := g.wait(t)
			require.Equal(t, 2, l.rank)
			t.Logf("noticed after %v: %v", l.at.Sub(begun), l.reason)
		})
	}
}

// loadTime is how long TestFullLoad and TestRelayed wait for a false alarm; the environment
// makes it longer than the tests of every day can afford.
func loadTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("DAISY_HEARTBEAT_LOAD_TIME")); err == nil {
		return d
	}
	return 3 * time.Second
}

// BenchmarkNoticed measures the time from a rank's end to Lost at another.
func BenchmarkNoticed(b *testing.B) {
	for _, way := range hurts {
		b.Run(way.name, func(b *testing.B) {
			var worst, sum time.Duration
			for range b.N {
				g := startGroup(b, 2, 0)
				time.Sleep(time.Duration(time.Now().UnixNano()) % interval) // any moment between two beats
				begun := time.Now()
				require.NoError(b, way.hurt(g.children[1].Process))
				after := g.wait(b).at.Sub(begun)
				sum += after
				worst = max(worst, after)
				g.Close()
			}
			b.ReportMetric(float64(sum.Milliseconds())/float64(b.N), "ms/noticed")
			b.ReportMetric(float64(worst.Milliseconds()), "ms-worst")
		})
	}
}
