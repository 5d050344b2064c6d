package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"daisy/node"
	"daisy/node/identity"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
)

// demo runs a cluster of node processes on this machine, through the code that
// real nodes use: discovery (on the loopback interface), trust (handed in, where
// people would pair), invitation, consent (given on the command line), group,
// sharded engine, history.
type demo struct {
	asking
	nodes  int
	model  string
	prompt string
	dir    string
	asked  []string // the flags of asking that were given, for the leader
	leader node.ID
}

func demoCommand() *cobra.Command {
	var d demo
	asked := pflag.NewFlagSet("", pflag.ContinueOnError) // those of asking
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Several nodes on this machine answer a prompt together",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Flags().Visit(func(f *pflag.Flag) {
				if asked.Lookup(f.Name) != nil && f.Name != "json" && f.Name != "threads" {
					d.asked = append(d.asked, fmt.Sprintf("--%s=%s", f.Name, f.Value))
				}
			})
			return d.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	d.asking.flags(cmd)
	cmd.Flags().VisitAll(asked.AddFlag)
	f := cmd.Flags()
	f.IntVar(&d.nodes, "nodes", 2, "number of nodes")
	f.StringVar(&d.model, "model", "", "the .gguf file (default: the first in ./models)")
	f.StringVar(&d.prompt, "prompt", "What is the capital of France?", "what to ask")
	f.StringVar(&d.dir, "demo-dir", "", "where the nodes keep their files and the history stays (default: a new temporary folder)")
	return cmd
}

func (d *demo) run(ctx context.Context, out, status io.Writer) error {
	if d.nodes < 1 || d.nodes > 16 {
		return fmt.Errorf("--nodes %d is not in 1..16", d.nodes)
	}
	if d.model == "" {
		found, _ := filepath.Glob("models/*.gguf")
		if len(found) == 0 {
			return errors.New("there is no model in ./models: run `make model`, or name one with --model")
		}
		d.model = found[0]
	}
	model, err := filepath.Abs(d.model)
	if err != nil {
		return err
	}
	if d.dir == "" {
		if d.dir, err = os.MkdirTemp("", "daisy-demo-"); err != nil {
			return err
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if d.threads == 0 {
		d.threads = max(1, runtime.NumCPU()/d.nodes)
	}
	d.model = model
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the nodes; wait below sees them off
	procs := processes{exe: exe, status: status}
	defer procs.wait()
	defer cancel()

	// The nodes are all of one owner, who hands them trust in each other.
	leader, err := identity.Load(filepath.Join(d.dir, "demo-0"))
	if err != nil {
		return err
	}
	d.leader = leader.ID()
	members, err := d.startMembers(ctx, &procs)
	if err != nil {
		return err
	}
	res, err := d.lead(ctx, &procs, members, out)
	if err != nil {
		return err
	}
	if res.NoTemplate {
		fmt.Fprintln(status, noTemplate)
	}
	return d.report(res, members, out)
}

// member is a node process that serves.
type member struct {
	id  string
	pid int
}

// startMembers starts all nodes but the leader and waits until each listens.
func (d *demo) startMembers(ctx context.Context, procs *processes) ([]member, error) {
	members := make([]member, d.nodes-1)
	var g errgroup.Group
	for i := range members {
		g.Go(func() error {
			name := fmt.Sprintf("demo-%d", i+1)
			p, err := procs.start(ctx, name, "serve", "--json", "--consent", "always", "--name", name,
				"--dir", filepath.Join(d.dir, name), "--trust", string(d.leader), "--interface", loopback(), "--listen", "127.0.0.1:0",
				"--model-file", d.model, "--threads", strconv.Itoa(d.threads), "--shared-cores")
			if err != nil {
				return err
			}
			line, err := p.line(ctx, 20*time.Second)
			if err != nil {
				return fmt.Errorf("%s did not start: %w", name, err)
			}
			var s serving
			if err := json.Unmarshal(line, &s); err != nil || s.Event != "listening" {
				return fmt.Errorf("%s said %q instead of its address", name, line)
			}
			members[i] = member{string(s.ID), p.cmd.Process.Pid}
			return nil
		})
	}
	return members, g.Wait()
}

// lead runs the leader's process, which asks the prompt, and passes its words on.
func (d *demo) lead(ctx context.Context, procs *processes, members []member, out io.Writer) (*togetherAnswer, error) {
	args := append([]string{"run", "--json", "--stream", "--keep", "--whole", "--name", "demo-0",
		"--dir", filepath.Join(d.dir, "demo-0"), "--interface", loopback(), "--listen", "127.0.0.1:0",
		"--threads", strconv.Itoa(d.threads)}, d.asked...)
	if d.nodes > 1 {
		args = append(args, "--shared-cores")
	}
	for _, m := range members {
		args = append(args, "--with", m.id, "--trust", m.id)
	}
	args = append(args, "--", d.model, d.prompt) // the prompt may look like a flag
	p, err := procs.start(ctx, "demo-0", args...)
	if err != nil {
		return nil, err
	}
	if !d.json {
		fmt.Fprintf(out, "> %s\n", d.prompt)
	}
	var last []byte
	for {
		line, err := p.line(ctx, 0)
		if err != nil {
			break
		}
		last = line
		var piece streamed
		if json.Unmarshal(line, &piece) == nil && piece.Text != "" && !d.json {
			fmt.Fprint(out, piece.Text)
		}
	}
	if !d.json {
		fmt.Fprintln(out)
	}
	if err := p.wait(); err != nil {
		return nil, p.why(err)
	}
	var res togetherAnswer
	if err := json.Unmarshal(last, &res); err != nil {
		return nil, fmt.Errorf("the leader's result is no JSON: %w", err)
	}
	for i := range res.Nodes {
		res.Nodes[i].PID = p.cmd.Process.Pid
		for _, m := range members {
			if string(res.Nodes[i].ID) == m.id {
				res.Nodes[i].PID = m.pid
			}
		}
	}
	return &res, nil
}

// report prints the result, and fails if not all nodes took part.
func (d *demo) report(res *togetherAnswer, members []member, out io.Writer) error {
	info, err := os.Stat(d.model)
	if err != nil {
		return err
	}
	if len(res.Nodes) != d.nodes {
		return fmt.Errorf("%d of %d nodes took part", len(res.Nodes), d.nodes)
	}
	for _, n := range res.Nodes {
		if n.WeightBytes == 0 || d.nodes > 1 && n.WeightBytes > info.Size()*9/10 {
			return fmt.Errorf("%s holds %d of the model's %d bytes: this was no cluster", n.Name, n.WeightBytes, info.Size())
		}
	}
	if d.json {
		return printJSON(out, res)
	}
	for _, n := range res.Nodes {
		fmt.Fprintf(out, "rank %d  %s  %s  process %d  %.1f MB of weights\n", n.Rank, n.Name, n.ID, n.PID, float64(n.WeightBytes)/1e6)
	}
	fmt.Fprintln(out, statsLine(res.Stats))
	fmt.Fprintf(out, "The answer is row %d of table messages in %s\n", res.History.Row, res.History.Path)
	return nil
}

func loopback() string {
	if runtime.GOOS == "darwin" {
		return "lo0"
	}
	return "lo"
}

// processes starts nodes and ends them with SIGTERM.
type processes struct {
	exe    string
	status io.Writer

	mu  sync.Mutex // guards all
	all []*process
}

// process is one node with the lines it prints.
type process struct {
	name  string
	cmd   *exec.Cmd
	lines chan []byte
	done  chan struct{} // closed when it has ended; then err is set
	err   error
	tail  *tail
}

func (ps *processes) start(ctx context.Context, name string, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, ps.exe, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: cmd, lines: make(chan []byte, 64), done: make(chan struct{}), tail: &tail{}}
	cmd.Stderr = p.tail
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	fmt.Fprintf(ps.status, "%s is process %d\n", name, cmd.Process.Pid)
	go func() { // ends with the process's output; wait waits for it
		defer close(p.done)
		r := bufio.NewReader(stdout)
		for {
			line, err := r.ReadBytes('\n')
			if line = bytes.TrimSpace(line); len(line) > 0 {
				select {
				case p.lines <- line:
				case <-ctx.Done():
				}
			}
			if err != nil {
				break
			}
		}
		close(p.lines)
		p.err = cmd.Wait()
	}()
	ps.mu.Lock()
	ps.all = append(ps.all, p)
	ps.mu.Unlock()
	return p, nil
}

// wait sees all processes off.
func (ps *processes) wait() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.all {
		for range p.lines {
		}
		<-p.done
	}
}

// line returns the process's next line; limit 0 means no limit.
func (p *process) line(ctx context.Context, limit time.Duration) ([]byte, error) {
	var timeout <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		timeout = t.C
	}
	select {
	case line, ok := <-p.lines:
		if !ok {
			return nil, p.why(io.EOF)
		}
		return line, nil
	case <-timeout:
		return nil, fmt.Errorf("no word within %v", limit)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *process) wait() error {
	<-p.done
	return p.err
}

// why turns the end of the process into the error it printed last, as run does;
// what was killed had no time for one.
func (p *process) why(err error) error {
	<-p.done
	if said, ok := strings.CutPrefix(p.tail.last(), "daisy: "); ok {
		return errors.New(said)
	}
	if p.err != nil {
		err = p.err
	}
	return fmt.Errorf("%s ended: %w", p.name, err)
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex // guards b
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - 4096; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

// last is the last line written.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.b)), "\n")
	return lines[len(lines)-1]
}
