package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"daisy/inference"
	"daisy/inference/calibrate"
	"daisy/inference/plan"
	"daisy/rdma/linkbench/relay"
	"daisy/rdma/tcp/tcptest"
)

// desk is the processes of bench --nodes, as their parent sees them: it tells
// them what to do, in a line of JSON, and hears in another what came of it.
type desk struct {
	ctx       context.Context
	cancel    context.CancelFunc
	b         *nodesBenchmark
	status    io.Writer
	model     string
	threads   int
	shared    bool // of this machine's cores
	processes []*linkProcess
	addresses []string // where each takes connections
	relays    []*relay.Relay
	epoch     uint64
	rounds    int // measured so far: each has prompts of its own
}

// newDesk starts the processes. Relays between them let everything come later.
func newDesk(ctx context.Context, b *nodesBenchmark, relays bool, status io.Writer) (_ *desk, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	d := &desk{b: b, status: status, threads: max(1, b.threads)}
	d.shared = b.nodes*d.threads > runtime.NumCPU()
	if d.model, err = filepath.Abs(b.model); err != nil {
		return nil, err
	}
	d.ctx, d.cancel = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	task := nodeTask{Threads: d.threads, SharedCores: d.shared}
	if b.secure {
		id, err := tcptest.NewIdentity()
		if err != nil {
			return nil, err
		}
		task.TLS = &id
	}
	for i := range b.nodes {
		p, err := startLinkRank(d.ctx, exe, i, b.pin)
		if err != nil {
			return nil, err
		}
		d.processes = append(d.processes, p)
		d.says("Process %d is %d", i, p.cmd.Process.Pid)
		if err := d.tell(i, task); err != nil {
			return nil, err
		}
		word, err := d.hear(i)
		if err != nil {
			return nil, err
		}
		if relays {
			r, err := relay.New(word.Address, 0)
			if err != nil {
				return nil, err
			}
			d.relays = append(d.relays, r)
			word.Address = r.Address()
		}
		d.addresses = append(d.addresses, word.Address)
	}
	return d, nil
}

// says tells people what is being done, if they want to know.
func (d *desk) says(format string, args ...any) {
	if d.b.progress {
		fmt.Fprintf(d.status, format+"\n", args...)
	}
}

// close ends the processes and waits for them.
func (d *desk) close() {
	d.cancel()
	for _, p := range d.processes {
		_ = p.cmd.Wait() // it was told to end
	}
	for _, r := range d.relays {
		r.Close()
	}
}

func (d *desk) tell(process int, v any) error {
	if err := d.processes[process].tell(v); err != nil {
		return d.why(process, err)
	}
	return nil
}

func (d *desk) hear(process int) (w nodeWord, err error) {
	if err := d.processes[process].hear(&w); err != nil {
		return w, d.why(process, err)
	}
	if w.Error != "" {
		return w, fmt.Errorf("process %d: %s", process, w.Error)
	}
	return w, nil
}

// why prefers that people ended it to what a process says of that.
func (d *desk) why(process int, err error) error {
	if d.ctx.Err() != nil {
		return d.ctx.Err()
	}
	return fmt.Errorf("process %d: %w", process, d.processes[process].why(err))
}

// all tells each of the processes something and hears what each answers.
func (d *desk) all(members []int, order func(rank int) nodeOrder) ([]nodeWord, error) {
	for rank, m := range members {
		if err := d.tell(m, order(rank)); err != nil {
			return nil, err
		}
	}
	words := make([]nodeWord, len(members))
	for rank, m := range members {
		var err error
		if words[rank], err = d.hear(m); err != nil {
			return nil, err
		}
	}
	return words, nil
}

// group is the order to connect, for one more group of the processes.
func (d *desk) group(members []int) func(rank int) nodeGroup {
	d.epoch++
	g := nodeGroup{Epoch: d.epoch, World: len(members)}
	for _, m := range members {
		g.Addresses = append(g.Addresses, d.addresses[m])
	}
	return func(rank int) nodeGroup {
		g.Rank = rank
		return g
	}
}

// load has the processes load a plan, or each its shard of it alone.
func (d *desk) load(members []int, p plan.Plan, apart bool) ([]inference.Info, error) {
	g := d.group(members)
	l := nodeLoad{Model: d.model, Plan: &p, Context: d.b.prompt + d.b.gen, Sequences: d.b.sequences, Apart: apart}
	words, err := d.all(members, func(rank int) nodeOrder {
		l := l
		l.nodeGroup = g(rank)
		return nodeOrder{Load: &l}
	})
	if err != nil {
		return nil, err
	}
	return infosOf(words)
}

// loadAlone has each of the processes load all of a model.
func (d *desk) loadAlone(members []int, model string) error {
	words, err := d.all(members, func(int) nodeOrder {
		return nodeOrder{Load: &nodeLoad{nodeGroup: nodeGroup{World: 1}, Model: model, Context: d.b.prompt + d.b.gen, Sequences: 1, Apart: true}}
	})
	if err == nil {
		_, err = infosOf(words)
	}
	return err
}

func infosOf(words []nodeWord) (infos []inference.Info, err error) {
	for i, w := range words {
		if w.Info == nil {
			return nil, fmt.Errorf("process %d did not say what it loaded", i)
		}
		infos = append(infos, *w.Info)
	}
	return infos, nil
}

// unload frees what was loaded apart.
func (d *desk) unload(members []int) error {
	_, err := d.all(members, func(int) nodeOrder { return nodeOrder{Unload: true} })
	return err
}

// measure runs one round on each of the processes, which lead, at the same time.
func (d *desk) measure(members []int, apart bool) ([]nodeSpeed, error) {
	return d.measureSequences(members, d.b.sequences, apart)
}

func (d *desk) measureSequences(members []int, sequences int, apart bool) (speeds []nodeSpeed, err error) {
	m := nodeMeasure{apart, d.rounds, sequences, d.b.prompt, d.b.gen}
	d.rounds++
	words, err := d.all(members, func(int) nodeOrder { return nodeOrder{Measure: &m} })
	if err != nil {
		return nil, err
	}
	for i, w := range words {
		if w.Speed == nil {
			return nil, fmt.Errorf("process %d did not say how fast it was", i)
		}
		speeds = append(speeds, *w.Speed)
	}
	return speeds, nil
}

// probe has the processes measure themselves, all at the same time, for a model of
// which each holds one of so many parts.
func (d *desk) probe(members []int, model string, parts int) (calibrate.Rates, error) {
	for _, m := range members {
		if err := d.tell(m, nodeOrder{Probe: model, Parts: parts}); err != nil {
			return calibrate.Rates{}, err
		}
	}
	for {
		var rates []calibrate.Rates
		for _, m := range members {
			w, err := d.hear(m)
			if err != nil {
				return calibrate.Rates{}, err
			}
			if w.Rates != nil {
				rates = append(rates, *w.Rates)
			}
		}
		if len(rates) > 0 {
			return calibrate.Mean(rates), nil
		}
		for _, m := range members { // all have met
			if err := d.tell(m, nodeOrder{Go: true}); err != nil {
				return calibrate.Rates{}, err
			}
		}
	}
}

// measureLinks sets the delay and measures the links with it.
func (d *desk) measureLinks(f *forecast, delay time.Duration) (err error) {
	for _, r := range d.relays {
		r.SetDelay(delay)
	}
	if d.b.nodes > 1 {
		f.link, err = d.links(everyOf(d.b.nodes))
	}
	return err
}

func everyOf(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// links measures the links of the processes: the mean of all pairs.
func (d *desk) links(members []int) (plan.Link, error) {
	g := d.group(members)
	words, err := d.all(members, func(rank int) nodeOrder {
		g := g(rank)
		return nodeOrder{Links: &g}
	})
	if err != nil {
		return plan.Link{}, err
	}
	if words[0].Link == nil {
		return plan.Link{}, fmt.Errorf("process %d did not say how its links are", members[0])
	}
	return *words[0].Link, nil
}
