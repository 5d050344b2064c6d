package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"daisy/rdma"
	"daisy/rdma/linkbench"
	"daisy/rdma/mem"
	"daisy/rdma/tcp"
	"daisy/rdma/tcp/tcptest"
	"daisy/rdma/verbs"

	"golang.org/x/sync/errgroup"
)

const (
	maxLinkRanks  = 16
	linkPatience  = 10 * time.Second // for processes and machines to connect
	maxLinkResult = 16 << 20
)

// linkTask is what a process of --local reads first; later it reads all
// addresses, which it needs to connect.
type linkTask struct {
	Rank, World int
	TLS         *tcptest.Identity // nil: plain TCP
	Verbs       bool              // RDMA, which comes up over the TCP
	Options     linkbench.Options
}

// linkWord is a line that a process prints: its address, a row, or the result.
type linkWord struct {
	Address string            `json:",omitempty"`
	Row     *linkbench.Row    `json:",omitempty"`
	Result  *linkbench.Result `json:",omitempty"`
}

// inProcess measures mem, whose ranks share a process.
func (b *linkBenchmark) inProcess(ctx context.Context, o linkbench.Options) (*linkbench.Result, error) {
	if err := b.checkLocal(); err != nil {
		return nil, err
	}
	if b.pin {
		return nil, errors.New("--pin does not go with --transport mem, where all ranks are in this process")
	}
	results := make([]*linkbench.Result, b.local)
	var eg errgroup.Group
	for r, t := range mem.New(b.local) {
		o := o
		if r > 0 {
			o.Progress = nil
		}
		eg.Go(func() (err error) {
			g := rdma.NewGroup(t, 1)
			defer g.Close()
			results[r], err = linkbench.Run(ctx, g, o)
			return err
		})
	}
	err := eg.Wait()
	return results[0], err
}

func (b *linkBenchmark) checkLocal() error {
	if b.local < 2 || b.local > maxLinkRanks {
		return fmt.Errorf("--local %d is not in 2..%d", b.local, maxLinkRanks)
	}
	return nil
}

// processes measures between processes of this program. They end with ctx.
func (b *linkBenchmark) processes(ctx context.Context, o linkbench.Options, status io.Writer) (*linkbench.Result, error) {
	if err := b.checkLocal(); err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	task := linkTask{World: b.local, Verbs: b.transport == "verbs", Options: o}
	how := linkWords(task.Verbs, false)
	if b.transport == "tcp+tls" {
		id, err := tcptest.NewIdentity()
		if err != nil {
			return nil, err
		}
		task.TLS, how = &id, "over TLS 1.3 with a key made for this run"
	}
	fmt.Fprintf(status, "Measuring between %d processes on this machine, %s.\n", b.local, how)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ranks := make([]*linkProcess, b.local)
	defer func() {
		cancel()
		for _, p := range ranks {
			if p != nil {
				p.cmd.Wait()
			}
		}
	}()
	addresses := make([]string, b.local)
	for r := range ranks {
		task.Rank = r
		if ranks[r], err = startLinkRank(ctx, exe, r, b.pin, "link"); err != nil {
			return nil, err
		}
		if err := ranks[r].tell(task); err != nil {
			return nil, ranks[r].why(err)
		}
		word, err := ranks[r].word()
		if err != nil {
			return nil, ranks[r].why(err)
		}
		addresses[r] = word.Address
	}
	for _, p := range ranks {
		if err := p.tell(addresses); err != nil {
			return nil, p.why(err)
		}
	}
	for {
		word, err := ranks[0].word()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, ranks[0].why(err)
		case word.Result != nil:
			return word.Result, nil
		case word.Row != nil && o.Progress != nil:
			o.Progress(*word.Row)
		}
	}
}

// linkProcess is one rank's process, as its parent sees it.
type linkProcess struct {
	cmd   *exec.Cmd
	in    io.Writer
	lines *bufio.Scanner
	tail  *tail
}

// startLinkRank starts a rank's process of "bench", or of a command below it.
func startLinkRank(ctx context.Context, exe string, rank int, pin bool, command ...string) (*linkProcess, error) {
	args := append(append([]string{"bench"}, command...), "--rank")
	p := &linkProcess{cmd: exec.CommandContext(ctx, exe, args...), tail: &tail{}}
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 5 * time.Second
	p.cmd.Stderr = p.tail
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.lines = in, bufio.NewScanner(out)
	p.lines.Buffer(nil, maxLinkResult)
	start := p.cmd.Start
	if pin {
		start = func() error { return startPinned(p.cmd, rank) }
	}
	if err := start(); err != nil {
		return nil, fmt.Errorf("starting rank %d: %w", rank, err)
	}
	return p, nil
}

func (p *linkProcess) tell(v any) error { return json.NewEncoder(p.in).Encode(v) }

func (p *linkProcess) word() (w linkWord, err error) {
	err = p.hear(&w)
	return w, err
}

// hear reads the next line that the process prints.
func (p *linkProcess) hear(v any) error {
	if !p.lines.Scan() {
		return errors.Join(p.lines.Err(), io.ErrUnexpectedEOF)
	}
	return json.Unmarshal(p.lines.Bytes(), v)
}

// why prefers what the process said last.
func (p *linkProcess) why(err error) error {
	p.cmd.Wait()
	if said, ok := strings.CutPrefix(p.tail.last(), "daisy: "); ok {
		return errors.New(said)
	}
	return err
}

// linkRank is the life of a process of --local.
func linkRank(ctx context.Context, in io.Reader, out io.Writer) error {
	var task linkTask
	heard, say := json.NewDecoder(in), json.NewEncoder(out)
	if err := heard.Decode(&task); err != nil {
		return err
	}
	if task.World < 2 || task.World > maxLinkRanks || task.Rank < 0 || task.Rank >= task.World {
		return fmt.Errorf("there is no rank %d of %d", task.Rank, task.World)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	if err := say.Encode(linkWord{Address: l.Addr().String()}); err != nil {
		return err
	}
	var addresses []string
	if err := heard.Decode(&addresses); err != nil {
		return err
	}
	if len(addresses) != task.World {
		return fmt.Errorf("%d addresses for %d ranks", len(addresses), task.World)
	}
	conns, err := linkConns(ctx, task, addresses, l)
	if err != nil {
		return err
	}
	g, err := linkGroup(ctx, task.Rank, conns, task.Verbs)
	if err != nil {
		return err
	}
	defer g.Close()
	if task.Rank == 0 {
		task.Options.Progress = func(r linkbench.Row) { say.Encode(linkWord{Row: &r}) }
	}
	res, err := linkbench.Run(ctx, g, task.Options)
	if err != nil || task.Rank > 0 {
		return err
	}
	return say.Encode(linkWord{Result: res})
}

// linkGroup makes a group of connections, with RDMA between all ranks if asked.
func linkGroup(ctx context.Context, rank int, conns []net.Conn, overVerbs bool) (*rdma.Group, error) {
	base, err := tcp.New(rank, len(conns), 1, conns)
	if err != nil || !overVerbs {
		if err != nil {
			return nil, err
		}
		return rdma.NewGroup(base, 1), nil
	}
	stop := context.AfterFunc(ctx, func() { base.Abort(context.Cause(ctx)) })
	defer stop()
	t, err := verbs.New(base, verbs.Options{Epoch: 1, Require: true})
	if err != nil {
		base.Close()
		return nil, err
	}
	return rdma.NewGroup(t, 1), nil
}

// linkConns dials the lower ranks, saying its own rank in four bytes, and
// accepts the higher ones.
func linkConns(ctx context.Context, task linkTask, addresses []string, l net.Listener) (conns []net.Conn, err error) {
	conns = make([]net.Conn, task.World)
	defer func() {
		for _, c := range conns {
			if err != nil && c != nil {
				c.Close()
			}
		}
	}()
	deadline := time.Now().Add(linkPatience)
	dialer := net.Dialer{Deadline: deadline}
	var client, server *tls.Config
	if task.TLS != nil {
		if client, server, err = task.TLS.Configs(); err != nil {
			return conns, err
		}
	}
	for r := range task.Rank {
		c, err := dialer.DialContext(ctx, "tcp", addresses[r])
		if err != nil {
			return conns, err
		}
		conns[r] = c
		if err := binary.Write(c, binary.LittleEndian, uint32(task.Rank)); err != nil {
			return conns, err
		}
		if client != nil {
			conns[r] = tls.Client(tcp.Wire(c), client)
		}
	}
	l.(*net.TCPListener).SetDeadline(deadline)
	for range task.World - 1 - task.Rank {
		c, err := l.Accept()
		if err != nil {
			return conns, err
		}
		var r uint32
		c.SetReadDeadline(deadline)
		if err := binary.Read(c, binary.LittleEndian, &r); err != nil {
			c.Close()
			return conns, err
		}
		if int64(r) <= int64(task.Rank) || int64(r) >= int64(task.World) || conns[r] != nil {
			c.Close()
			return conns, fmt.Errorf("a stranger connected as rank %d", r)
		}
		c.SetReadDeadline(time.Time{})
		conns[r] = c
		if server != nil {
			conns[r] = tls.Server(tcp.Wire(c), server)
		}
	}
	return conns, nil
}
