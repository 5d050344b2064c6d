package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"daisy/app/latencychart"

	"github.com/spf13/cobra"
)

// latencyBenchmark measures how speed falls with the latency of the links, for each
// plan, beside what was predicted.
type latencyBenchmark struct {
	nodesBenchmark
	plans  string
	delays string
	png    string
}

func benchLatencyCommand() *cobra.Command {
	l := latencyBenchmark{nodesBenchmark: nodesBenchmark{benchmark: &benchmark{}}}
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "Measure how speed falls with the latency between processes of this machine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	l.benchmark.flags(f)
	l.nodesBenchmark.flags(f)
	for _, other := range []string{"plan", "delay", "independent", "rank"} {
		_ = f.MarkHidden(other)
	}
	f.StringVar(&l.plans, "plans", "tp,pp", "plans to compare, of tp, pp and mixed")
	f.StringVar(&l.delays, "delays", "10us,100us,500us,2ms", "how much longer everything takes from one process to another")
	f.StringVar(&l.png, "png", "", "also draw the curves into this file")
	return cmd
}

func (l *latencyBenchmark) run(ctx context.Context, out, status io.Writer) error {
	if l.nodes == 0 {
		l.nodes = 4
	}
	if l.independent || l.delay != 0 || l.plan != "auto" {
		return errors.New("this measures --plans with --delays")
	}
	var delays []time.Duration
	for _, s := range strings.Split(l.delays, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(s))
		if err != nil || d < 0 || d > maxBenchDelay {
			return fmt.Errorf("--delays: %q is no duration up to %v", s, maxBenchDelay)
		}
		delays = append(delays, d)
	}
	plans := strings.Split(l.plans, ",")
	for _, p := range plans {
		l.plan = strings.TrimSpace(p)
		if err := l.check(); err != nil {
			return err
		}
	}
	var all []*nodesResult
	for _, p := range plans {
		l.plan = strings.TrimSpace(p)
		rs, err := l.sweep(ctx, status, delays)
		if err != nil {
			return err
		}
		all = append(all, rs...)
	}
	return l.report(all, out, status)
}

func (l *latencyBenchmark) report(all []*nodesResult, out, status io.Writer) error {
	if l.png != "" {
		var points []latencychart.Point
		for _, r := range all {
			points = append(points, latencychart.Point{Plan: string(r.Kind), Latency: r.Latency, Measured: r.Decode, Predicted: r.PredictedDecode})
		}
		f, err := os.Create(l.png)
		if err != nil {
			return err
		}
		title := fmt.Sprintf("%s on %d processes, %s", all[0].Model, len(all[0].Ranks), all[0].Transport)
		if err := errors.Join(latencychart.PNG(f, title, points), f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(status, "The curves are in %s\n", l.png)
	}
	if l.json {
		return printJSON(out, all)
	}
	fmt.Fprintf(out, "%-16s %10s %12s %18s %18s %7s\n", "plan", "delay", "latency µs", "predicted tokens/s", "measured tokens/s", "ratio")
	for _, r := range all {
		fmt.Fprintf(out, "%-16s %10v %12.1f %18.2f %18.2f %7.2f\n", r.Kind, time.Duration(r.DelaySeconds*float64(time.Second)).Round(time.Microsecond),
			r.Latency*1e6, r.PredictedDecode, r.Decode, r.DecodeRatio)
	}
	return nil
}
