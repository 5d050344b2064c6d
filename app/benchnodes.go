package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"daisy/inference"
	"daisy/inference/plan"

	"github.com/spf13/pflag"
)

// nodesBenchmark measures one model on several processes of this machine that
// share it as a plan says, beside the plan's prediction.
type nodesBenchmark struct {
	*benchmark
	nodes       int
	plan        string
	secure, pin bool
	independent bool
	calibrateOn string
	delay       time.Duration
	progress    bool
	rank        bool // this is one of the processes
}

// maxBenchNodes are as many processes as make sense to measure on one machine.
const maxBenchNodes = 16

// maxBenchDelay bounds how far apart the processes may pretend to be.
const maxBenchDelay = time.Second

func (b *nodesBenchmark) flags(f *pflag.FlagSet) {
	f.IntVar(&b.nodes, "nodes", 0, "measure so many processes of this machine together, each with --threads threads (default then: 1)")
	f.StringVar(&b.plan, "plan", "auto", "with --nodes, how they share the model: tp (tensor parallel), pp (pipeline), mixed, or auto, which may leave some out")
	f.BoolVar(&b.secure, "tls", true, "with --nodes: TLS between them, as people have it")
	f.BoolVar(&b.pin, "pin", runtime.GOOS == "linux", "with --nodes: keep each process on one core (Linux)")
	f.BoolVar(&b.independent, "independent", false, "with --nodes and --plan tp: also measure the processes when each computes its shard without the others")
	f.StringVar(&b.calibrateOn, "calibrate-on", "", "with --nodes: predict from the speed of this other model, measured first, and not from a probe alone")
	f.DurationVar(&b.delay, "delay", 0, "with --nodes: how much longer everything takes from one process to another, such as 100us")
	f.BoolVar(&b.progress, "progress", false, "with --nodes: say on standard error what is being done")
	f.BoolVar(&b.rank, "rank", false, "be a process of --nodes")
	_ = f.MarkHidden("rank")
}

// alone refuses flags that go with --nodes only.
func (b *nodesBenchmark) alone(f *pflag.FlagSet) (err error) {
	of := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&nodesBenchmark{}).flags(of)
	f.Visit(func(x *pflag.Flag) {
		if of.Lookup(x.Name) != nil && x.Name != "nodes" && err == nil {
			err = fmt.Errorf("--%s goes with --nodes only", x.Name)
		}
	})
	return err
}

// planKinds are the values of --plan.
var planKinds = map[string]plan.Kind{"tp": plan.KindTensorParallel, "pp": plan.KindPipeline, "mixed": plan.KindMixed, "auto": ""}

func (b *nodesBenchmark) check() error {
	if err := b.benchmark.check(); err != nil {
		return err
	}
	_, known := planKinds[b.plan]
	switch {
	case b.nodes < 1 || b.nodes > maxBenchNodes:
		return fmt.Errorf("--nodes %d is not in 1..%d", b.nodes, maxBenchNodes)
	case !known:
		return fmt.Errorf("--plan %q is not tp, pp, mixed or auto", b.plan)
	case b.independent && b.plan != "tp":
		return errors.New("--independent goes with --plan tp only: the stages of other plans wait for each other")
	case b.pin && runtime.GOOS != "linux":
		return errors.New("--pin: this system cannot bind a process to a core")
	case b.delay < 0 || b.delay > maxBenchDelay:
		return fmt.Errorf("--delay %v is not in 0..%v", b.delay, maxBenchDelay)
	case b.threads < 0 || b.pin && b.threads > 1:
		return fmt.Errorf("--threads %d: a process that is kept on one core has one", b.threads)
	}
	return nil
}

// nodesResult is what bench --nodes prints with --json. Speeds are medians.
type nodesResult struct {
	Model        string  `json:"model"`
	Nodes        int     `json:"nodes"`
	Transport    string  `json:"transport"`
	TLS          bool    `json:"tls"`
	DelaySeconds float64 `json:"delay_seconds"` // added, one way
	Relayed      bool    `json:"relayed"`       // by the program, as it is for a delay
	Pinned       bool    `json:"pinned"`        // each process to one core
	Cores        int     `json:"cores"`         // of this machine
	Threads      int     `json:"threads"`       // of each process
	Context      int     `json:"context"`
	Sequences    int     `json:"sequences"`
	PromptTokens int     `json:"prompt_tokens"`
	GenTokens    int     `json:"gen_tokens"`

	Kind  plan.Kind    `json:"plan_kind"`
	Plan  plan.Plan    `json:"plan"`
	Ranks []nodesShard `json:"ranks"`

	CalibratedOn string       `json:"calibrated_on,omitempty"`
	Probes       []nodesProbe `json:"probes"`
	Latency      float64      `json:"link_latency_seconds"`
	Bandwidth    float64      `json:"link_bytes_per_second"`

	PredictedPrefill float64   `json:"predicted_prefill_tokens_per_second"`
	PredictedDecode  float64   `json:"predicted_decode_tokens_per_second"`
	PredictedToken   plan.Step `json:"predicted_token_seconds"`
	Prefill          float64   `json:"prefill_tokens_per_second"`
	Decode           float64   `json:"decode_tokens_per_second"`
	PrefillRatio     float64   `json:"prefill_predicted_to_measured"`
	DecodeRatio      float64   `json:"decode_predicted_to_measured"`
	Prefills         []float64 `json:"prefill_samples"`
	Decodes          []float64 `json:"decode_samples"`

	Independent *nodesApart `json:"independent,omitempty"`
}

// nodesShard is what one rank holds.
type nodesShard struct {
	Rank    int        `json:"rank"`
	Process int        `json:"pid"`
	Stage   int        `json:"stage"`
	Layers  plan.Range `json:"layers"`
	Shard   plan.Shard `json:"shard"`
	Share   float64    `json:"share"` // of the bytes that all ranks hold
	Weights int64      `json:"weight_bytes"`
	Cache   int64      `json:"cache_bytes"`
}

// nodesApart is what the processes reach that compute the same shards at the same
// time, without communicating. A round's speed is that of the slower process, as a
// group's is.
type nodesApart struct {
	Prefill      float64   `json:"prefill_tokens_per_second"`
	Decode       float64   `json:"decode_tokens_per_second"`
	PrefillRatio float64   `json:"prefill_together_to_independent"` // median of the rounds' ratios
	DecodeRatio  float64   `json:"decode_together_to_independent"`
	Prefills     []float64 `json:"prefill_samples"`
	Decodes      []float64 `json:"decode_samples"`
}

func (b *nodesBenchmark) run(ctx context.Context, out, status io.Writer) error {
	if err := b.check(); err != nil {
		return err
	}
	r, err := b.measure(ctx, status)
	if err != nil {
		return err
	}
	if b.json {
		return printJSON(out, r)
	}
	_, err = io.WriteString(out, r.String())
	return err
}

// measure probes, plans, predicts and measures. Its processes end with it.
func (b *nodesBenchmark) measure(ctx context.Context, status io.Writer) (*nodesResult, error) {
	all, err := b.sweep(ctx, status, []time.Duration{b.delay})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// sweep does that with several delays, one after the other, for the plan that was
// found for the first.
func (b *nodesBenchmark) sweep(ctx context.Context, status io.Writer, delays []time.Duration) (all []*nodesResult, err error) {
	d, err := newDesk(ctx, b, len(delays) > 1 || delays[0] > 0, status)
	if err != nil {
		return nil, err
	}
	defer d.close()
	d.says("Probing")
	f, err := d.forecast()
	if err != nil {
		return nil, err
	}
	var c plan.Candidate
	var infos []inference.Info
	for _, delay := range delays {
		if err := d.measureLinks(f, delay); err != nil {
			return nil, err
		}
		if infos == nil {
			if c, err = f.choose(planKinds[b.plan], b.nodes); err != nil {
				return nil, err
			}
			d.says("Loading %s on %d processes", c.Kind, len(c.Nodes))
			if infos, err = d.load(c.Nodes, c.Plan, false); err != nil {
				return nil, err
			}
			if b.independent {
				if _, err := d.load(c.Nodes, c.Plan, true); err != nil {
					return nil, err
				}
			}
		}
		c.Prediction = f.predict(c)
		r := b.result(d, f, c, infos, delay)
		for round := range b.warm + b.repeat {
			d.says("Round %d of %d", round+1, b.warm+b.repeat)
			if err := r.round(d, c.Nodes, round >= b.warm); err != nil {
				return nil, err
			}
		}
		r.summarize()
		all = append(all, r)
	}
	return all, nil
}

// result is what is known before measuring.
func (b *nodesBenchmark) result(d *desk, f *forecast, c plan.Candidate, infos []inference.Info, delay time.Duration) *nodesResult {
	r := &nodesResult{Nodes: b.nodes, TLS: b.secure, Transport: "tcp", DelaySeconds: delay.Seconds(), Relayed: len(d.relays) > 0,
		Pinned: b.pin, Cores: runtime.NumCPU(), Threads: d.threads, Context: b.prompt + b.gen, Sequences: b.sequences,
		PromptTokens: b.prompt, GenTokens: b.gen, Kind: c.Kind, Plan: c.Plan, CalibratedOn: b.calibrateOn, Probes: f.probes,
		PredictedPrefill: c.Prefill, PredictedDecode: c.Decode, PredictedToken: c.Token, Latency: f.link.Latency, Bandwidth: f.link.Bandwidth}
	if b.secure {
		r.Transport = "tcp+tls"
	}
	if len(c.Nodes) == 1 {
		r.Transport, r.TLS = "none", false
	}
	if b.independent {
		r.Independent = &nodesApart{}
	}
	r.describe(d, c, infos)
	return r
}

// describe fills in what each rank holds.
func (r *nodesResult) describe(d *desk, c plan.Candidate, infos []inference.Info) {
	r.Model = infos[0].Name
	all := 0.0
	for rank, info := range infos {
		stage, shard, _ := c.Plan.Of(rank)
		r.Ranks = append(r.Ranks, nodesShard{Rank: rank, Process: d.processes[c.Nodes[rank]].cmd.Process.Pid, Stage: stage,
			Layers: c.Plan.Stages[stage].Layers, Shard: shard, Weights: info.WeightBytes, Cache: info.CacheBytes})
		all += float64(info.WeightBytes)
	}
	for i := range r.Ranks {
		r.Ranks[i].Share = float64(r.Ranks[i].Weights) / all
	}
}

// round measures once.
func (r *nodesResult) round(d *desk, members []int, counts bool) error {
	speeds, err := d.measure(members[:1], false)
	if err != nil {
		return err
	}
	if counts {
		r.Prefills, r.Decodes = append(r.Prefills, speeds[0].Prefill), append(r.Decodes, speeds[0].Decode)
	}
	if r.Independent == nil {
		return nil
	}
	if speeds, err = d.measure(members, true); err != nil || !counts {
		return err
	}
	slow := speeds[0]
	for _, s := range speeds {
		slow = nodeSpeed{min(slow.Prefill, s.Prefill), min(slow.Decode, s.Decode)}
	}
	a := r.Independent
	a.Prefills, a.Decodes = append(a.Prefills, slow.Prefill), append(a.Decodes, slow.Decode)
	return nil
}

func (r *nodesResult) summarize() {
	r.Prefill, r.Decode = median(r.Prefills), median(r.Decodes)
	if r.Prefill > 0 {
		r.PrefillRatio = r.PredictedPrefill / r.Prefill
	}
	r.DecodeRatio = r.PredictedDecode / r.Decode
	a := r.Independent
	if a == nil {
		return
	}
	a.Prefill, a.Decode = median(a.Prefills), median(a.Decodes)
	var prefills, decodes []float64
	for i := range a.Decodes {
		decodes = append(decodes, r.Decodes[i]/a.Decodes[i])
		if a.Prefills[i] > 0 {
			prefills = append(prefills, r.Prefills[i]/a.Prefills[i])
		}
	}
	a.DecodeRatio = median(decodes)
	if len(prefills) > 0 {
		a.PrefillRatio = median(prefills)
	}
}

// String is the result for people.
func (r *nodesResult) String() string {
	var s strings.Builder
	how := r.Transport
	if r.DelaySeconds > 0 {
		how += fmt.Sprintf(" with %v more each way", time.Duration(r.DelaySeconds*float64(time.Second)))
	}
	pinned := "not pinned"
	if r.Pinned {
		pinned = "pinned"
	}
	fmt.Fprintf(&s, "%s on %d of %d processes, %s, %d threads each, %s, %d cores, context %d, %d sequences\n",
		r.Model, len(r.Ranks), r.Nodes, how, r.Threads, pinned, r.Cores, r.Context, r.Sequences)
	for _, x := range r.Ranks {
		fmt.Fprintf(&s, "rank %d: stage %d, layers %s, heads %s, columns %s, %.1f MB of weights (%.1f %%), KV cache %.1f MB\n",
			x.Rank, x.Stage, span(x.Layers), span(x.Shard.Heads), span(x.Shard.FFN), float64(x.Weights)/1e6, 100*x.Share, float64(x.Cache)/1e6)
	}
	fmt.Fprintf(&s, "%-10s %18s %18s\n", "", "prefill tokens/s", "decode tokens/s")
	fmt.Fprintf(&s, "%-10s %18.1f %18.1f\n", "predicted", r.PredictedPrefill, r.PredictedDecode)
	fmt.Fprintf(&s, "%-10s %18.1f %18.1f\n", "measured", r.Prefill, r.Decode)
	fmt.Fprintf(&s, "%-10s %18.2f %18.2f\n", "ratio", r.PrefillRatio, r.DecodeRatio)
	if a := r.Independent; a != nil {
		fmt.Fprintf(&s, "The same shards without communicating: %.1f and %.1f tokens/s; together is %.2f and %.2f of that\n",
			a.Prefill, a.Decode, a.PrefillRatio, a.DecodeRatio)
	}
	return s.String()
}
