package main

import (
	"fmt"
	"slices"

	"daisy/inference/calibrate"
	"daisy/inference/machine"
	"daisy/inference/plan"
	"daisy/inference/plan/profile"
)

// nodesProbe is what processes measured that all worked at the same time: they
// share the machine's memory, and maybe its cores.
type nodesProbe struct {
	AtOnce int `json:"at_once"` // processes
	calibrate.Rates
}

// forecast is what predictions for the processes come from.
type forecast struct {
	model  *plan.Model
	usage  plan.Usage
	nodes  int
	probes []nodesProbe // by AtOnce, as many as any stage may have
	link   plan.Link
}

// forecast probes the processes, not yet their links.
func (d *desk) forecast() (*forecast, error) {
	m, err := profile.Open(d.model)
	if err != nil {
		return nil, err
	}
	f := &forecast{model: m, nodes: d.b.nodes}
	f.usage = plan.Usage{Context: d.b.prompt + d.b.gen, Sequences: d.b.sequences, Prompt: d.b.prompt, Answer: d.b.gen}
	for _, n := range f.levels(d.b.plan) {
		r, err := d.rates(everyOf(n))
		if err != nil {
			return nil, err
		}
		f.probes = append(f.probes, nodesProbe{n, r})
	}
	return f, nil
}

// levels are the numbers of processes that may have to work at the same time.
func (f *forecast) levels(kind string) (n []int) {
	for i := 1; i <= f.nodes; i++ {
		switch {
		case i == f.nodes, kind == "auto", kind == "mixed" && i < f.nodes, kind == "pp" && i == 1:
			n = append(n, i)
		}
	}
	return n
}

// rates are the processes' when all of them work. After --calibrate-on, what that
// model reached corrects what the probe alone says: by as much as its own probe was
// wrong.
func (d *desk) rates(members []int) (calibrate.Rates, error) {
	r, err := d.probe(members, d.model, len(members))
	if err != nil || d.b.calibrateOn == "" {
		return r, err
	}
	of, err := d.probe(members, d.b.calibrateOn, 1)
	if err != nil {
		return r, err
	}
	m, err := profile.Open(d.b.calibrateOn)
	if err != nil {
		return r, err
	}
	if err := d.loadAlone(members, d.b.calibrateOn); err != nil {
		return r, err
	}
	var decodes, prefills []float64
	for round := range d.b.warm + d.b.repeat {
		speeds, err := d.measureSequences(members, 1, true)
		if err != nil {
			return r, err
		}
		if round < d.b.warm {
			continue
		}
		for _, s := range speeds {
			decodes, prefills = append(decodes, s.Decode), append(prefills, s.Prefill)
		}
	}
	if err := d.unload(members); err != nil {
		return r, err
	}
	u := plan.Usage{Context: d.b.prompt + d.b.gen, Sequences: 1, Prompt: d.b.prompt, Answer: d.b.gen}
	return r.Corrected(of, plan.Measured{Model: m, Usage: u, Decode: median(decodes), Prefill: median(prefills)})
}

// probe finds what was measured with n at once; with more where that was not done.
func (f *forecast) at(n int) calibrate.Rates {
	i := slices.IndexFunc(f.probes, func(p nodesProbe) bool { return p.AtOnce >= n })
	return f.probes[i].Rates
}

// nodesFor are the processes as they are while the plan runs: those of a stage work
// at the same time, and with several sequences those of all stages do.
func (f *forecast) nodesFor(p plan.Plan, order []int) []plan.Node {
	nodes := f.alike(f.nodes)
	for _, s := range p.Stages {
		busy := len(s.Ranks)
		if f.usage.Sequences > 1 {
			busy = len(order)
		}
		for _, rank := range s.Ranks {
			nodes[order[rank]] = f.alike(busy)[order[rank]]
		}
	}
	return nodes
}

// alike are the processes when so many work at the same time.
func (f *forecast) alike(busy int) []plan.Node {
	nodes := make([]plan.Node, f.nodes)
	for i := range nodes {
		nodes[i] = f.at(busy).Node(fmt.Sprintf("process %d", i), max(1, machine.MemoryBytes())/int64(f.nodes))
	}
	return nodes
}

// choose finds the plan of a kind for all processes; for no kind, the one of all
// plans, for however many of them, that answers soonest.
func (f *forecast) choose(kind plan.Kind, nodes int) (best plan.Candidate, err error) {
	c, err := plan.Choose(f.model, f.alike(f.nodes), plan.Uniform(f.nodes, f.link), f.usage)
	if err != nil {
		return best, err
	}
	if nodes == 1 && kind != "" {
		kind = plan.KindSolo
	}
	why := fmt.Errorf("there is no %s plan for %d processes", kind, nodes)
	found := false
	for _, x := range c.Candidates {
		if kind != "" && (x.Kind != kind || len(x.Nodes) != nodes) || x.Nodes[0] != 0 {
			continue
		}
		if x.Refused != nil {
			why = fmt.Errorf("%s on %d processes: %s", x.Kind, len(x.Nodes), x.Refused)
			continue
		}
		x.Prediction = f.predict(x)
		if !found || x.Answer < best.Answer {
			best, found = x, true
		}
	}
	if !found {
		return best, why
	}
	return best, nil
}

// predict says how fast a candidate will be.
func (f *forecast) predict(c plan.Candidate) plan.Prediction {
	return c.Plan.Predict(f.model, f.nodesFor(c.Plan, c.Nodes), plan.Uniform(f.nodes, f.link), c.Nodes, f.usage)
}
