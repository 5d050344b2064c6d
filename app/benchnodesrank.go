package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"daisy/inference"
	"daisy/inference/calibrate"
	"daisy/inference/gguf"
	"daisy/inference/plan"
	"daisy/rdma"
	"daisy/rdma/linkbench"
	"daisy/rdma/tcp"
	"daisy/rdma/tcp/tcptest"
)

// nodeTask is what a process of bench --nodes reads first.
type nodeTask struct {
	TLS         *tcptest.Identity // nil: plain TCP
	Threads     int
	SharedCores bool
}

// nodeOrder is what it reads then, one after the other; one field is set.
type nodeOrder struct {
	Probe   string       `json:",omitempty"` // for this model: says Ready before each part, and waits for Go
	Parts   int          `json:",omitempty"` // of that model, of which this process will hold one
	Go      bool         `json:",omitempty"`
	Links   *nodeGroup   `json:",omitempty"`
	Load    *nodeLoad    `json:",omitempty"`
	Measure *nodeMeasure `json:",omitempty"`
	Unload  bool         `json:",omitempty"` // what was loaded apart
}

// nodeGroup is a group to be made.
type nodeGroup struct {
	Epoch       uint64
	Rank, World int
	Addresses   []string
}

type nodeLoad struct {
	nodeGroup
	Model              string
	Plan               *plan.Plan `json:",omitempty"` // nil: all of it
	Context, Sequences int
	Apart              bool // without the others
}

type nodeMeasure struct {
	Apart                         bool
	Round, Sequences, Prompt, Gen int
}

// nodeWord is a line that such a process prints.
type nodeWord struct {
	Error   string           `json:",omitempty"`
	Address string           `json:",omitempty"`
	Ready   bool             `json:",omitempty"`
	Rates   *calibrate.Rates `json:",omitempty"`
	Link    *plan.Link       `json:",omitempty"`
	Info    *inference.Info  `json:",omitempty"`
	Speed   *nodeSpeed       `json:",omitempty"`
}

type nodeSpeed struct{ Prefill, Decode float64 }

// nodeLife is a process of bench --nodes.
type nodeLife struct {
	task     nodeTask
	listener net.Listener
	orders   <-chan nodeOrder // closed when the parent has gone
	say      *json.Encoder
	together *inference.Engine
	apart    *inference.Engine
	followed chan error // what following ended with
}

// nodeRank is the life of such a process. It ends when the parent closes its input,
// as its death does.
func nodeRank(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := nodeLife{say: json.NewEncoder(out), followed: make(chan error, 1)}
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&l.task); err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	orders := make(chan nodeOrder)
	l.orders = orders
	go func() { // ends with the input, or with this process
		defer close(orders)
		for {
			var o nodeOrder
			if err := decoder.Decode(&o); err != nil {
				cancel(errors.New("the parent has gone"))
				go func() { // ends with nodeRank
					select {
					case <-ended:
					case <-time.After(nodePatience):
						orphanExit()
					}
				}()
				return
			}
			select {
			case orders <- o:
			case <-ctx.Done():
				return
			}
		}
	}()
	var err error
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	defer l.listener.Close()
	if err := l.say.Encode(nodeWord{Address: l.listener.Addr().String()}); err != nil {
		return err
	}
	defer l.close()
	for {
		select {
		case o, ok := <-l.orders:
			if !ok {
				return context.Cause(ctx)
			}
			w, err := l.obey(ctx, o)
			if err != nil {
				return err
			}
			if err := l.say.Encode(w); err != nil {
				return err
			}
		case err := <-l.followed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// nodePatience is how long what runs may take to end when the parent has gone.
const nodePatience = 5 * time.Second

func (l *nodeLife) close() {
	for _, e := range []*inference.Engine{l.together, l.apart} {
		if e != nil {
			_ = e.Close()
		}
	}
}

func (l *nodeLife) obey(ctx context.Context, o nodeOrder) (w nodeWord, err error) {
	switch {
	case o.Probe != "":
		w.Rates, err = l.probe(ctx, o.Probe, o.Parts)
	case o.Links != nil:
		w.Link, err = l.links(ctx, o.Links)
	case o.Load != nil:
		w.Info, err = l.load(ctx, o.Load)
	case o.Measure != nil:
		e, m := l.together, o.Measure
		if m.Apart {
			e = l.apart
		}
		if e == nil {
			return w, errors.New("there is nothing loaded to measure")
		}
		var s nodeSpeed
		s.Prefill, s.Decode, err = e.Measure(ctx, m.Round, m.Sequences, m.Prompt, m.Gen)
		w.Speed = &s
	case o.Unload:
		if l.apart != nil {
			err = l.apart.Close()
			l.apart = nil
		}
	default:
		err = errors.New("an order that asks for nothing")
	}
	return w, err
}

func (l *nodeLife) probe(ctx context.Context, path string, parts int) (*calibrate.Rates, error) {
	f, err := gguf.OpenHeader(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	work, err := calibrate.Of(f)
	if err != nil {
		return nil, err
	}
	r, err := calibrate.Probe(ctx, work, calibrate.Options{Threads: l.task.Threads, SharedCores: l.task.SharedCores, Part: 1 / float64(max(1, parts)), Meet: func() error {
		if err := l.say.Encode(nodeWord{Ready: true}); err != nil {
			return err
		}
		select {
		case o := <-l.orders:
			if !o.Go {
				return errors.New("the probe was not told to go on")
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}})
	return &r, err
}

// connect makes a group of the processes.
func (l *nodeLife) connect(ctx context.Context, g *nodeGroup) (*rdma.Group, error) {
	if g.World < 1 || g.World > maxLinkRanks || g.Rank < 0 || g.Rank >= g.World || len(g.Addresses) != g.World {
		return nil, fmt.Errorf("there is no rank %d of %d with %d addresses", g.Rank, g.World, len(g.Addresses))
	}
	if g.World == 1 {
		return rdma.Solo(), nil
	}
	conns, err := linkConns(ctx, linkTask{Rank: g.Rank, World: g.World, TLS: l.task.TLS}, g.Addresses, l.listener)
	if err != nil {
		return nil, err
	}
	t, err := tcp.New(g.Rank, g.World, g.Epoch, conns)
	if err != nil {
		return nil, err
	}
	return rdma.NewGroup(t, g.Epoch), nil
}

// links measures all pairs, one after the other. Rank 0 hears what each found.
func (l *nodeLife) links(ctx context.Context, g *nodeGroup) (*plan.Link, error) {
	group, err := l.connect(ctx, g)
	if err != nil {
		return nil, err
	}
	defer group.Close()
	mean, err := meanLink(ctx, group)
	if err != nil {
		return nil, err
	}
	return &mean, group.Barrier(ctx)
}

// meanLink is the mean of all pairs' links, on every rank: of latencies, and of what
// a byte takes.
func meanLink(ctx context.Context, g *rdma.Group) (plan.Link, error) {
	world := g.WorldSize()
	sums := make([]float32, 2)
	for a := range world {
		for b := a + 1; b < world; b++ {
			if a == g.Rank() || b == g.Rank() {
				latency, bandwidth, err := linkbench.Pair(ctx, g, a+b-g.Rank())
				if err != nil {
					return plan.Link{}, err
				}
				if a == g.Rank() { // both have the same
					sums[0] += float32(latency.Seconds())
					sums[1] += float32(1 / bandwidth)
				}
			}
			if err := g.Barrier(ctx); err != nil {
				return plan.Link{}, err
			}
		}
	}
	if err := g.AllReduce(ctx, sums); err != nil {
		return plan.Link{}, err
	}
	pairs := float64(world*(world-1)) / 2
	return plan.Link{Latency: float64(sums[0]) / pairs, Bandwidth: pairs / float64(sums[1])}, nil
}

// load loads this process's part of a plan, and follows where it does not lead.
func (l *nodeLife) load(ctx context.Context, o *nodeLoad) (*inference.Info, error) {
	opt := inference.Options{Threads: l.task.Threads, Context: o.Context, Sequences: o.Sequences, Plan: o.Plan, SharedCores: l.task.SharedCores}
	if o.Apart {
		if o.Plan != nil {
			opt.Apart = &inference.Seat{Rank: o.Rank, World: o.World}
		}
	} else {
		g, err := l.connect(ctx, &o.nodeGroup)
		if err != nil {
			return nil, err
		}
		opt.Group = g
	}
	e, err := inference.Load(ctx, o.Model, opt)
	if err != nil {
		return nil, err
	}
	info := e.Info()
	if o.Apart {
		l.apart = e
		return &info, nil
	}
	l.together = e
	if info.Rank > 0 {
		go func() { l.followed <- e.Follow(ctx) }() // ends with the engine, which close ends
	}
	return &info, nil
}

// orphanExit ends a process that nobody needs and that did not end by itself.
func orphanExit() { os.Exit(1) }
