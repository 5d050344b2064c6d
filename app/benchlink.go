package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"daisy/rdma/linkbench"
	"daisy/rdma/linkbench/chart"

	"github.com/spf13/cobra"
)

// linkBenchmark measures the links of a group: of processes on this machine, or
// of two machines whose owners start one half each.
type linkBenchmark struct {
	local        int
	pin          bool
	listen, peer string
	secure       bool
	transport    string
	sizes, ops   string
	budget       time.Duration
	json         bool
	png          string
	rank         bool // this is a process of --local
}

func benchLinkCommand() *cobra.Command {
	var b linkBenchmark
	cmd := &cobra.Command{
		Use:   "link",
		Short: "Measure latency and bandwidth between processes or machines",
		Long: "Measure latency and bandwidth between processes here, or between two machines, for each pair and each collective.\n\n" +
			"On one machine:      daisy bench link --local 2\n" +
			"Between two, first:  daisy bench link --listen :7500\n" +
			"then on the other:   daisy bench link --peer 192.168.0.2:7500\n\n" +
			"The side with --peer says what is measured. With TLS, the key is made for this run and nobody checks whose it is;\n" +
			"without, nothing is encrypted. What travels is zeros.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return b.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&b.local, "local", 0, "measure between so many processes on this machine")
	f.BoolVar(&b.pin, "pin", false, "with --local: keep each process on a core of its own (Linux)")
	f.StringVar(&b.listen, "listen", "", "wait on this address, host:port, for the other machine")
	f.StringVar(&b.peer, "peer", "", "address, host:port, of the machine that listens")
	f.BoolVar(&b.secure, "tls", false, "short for --transport tcp+tls")
	f.StringVar(&b.transport, "transport", "tcp", "what to measure: tcp, tcp+tls, verbs (RDMA), or mem between ranks in this process")
	f.StringVar(&b.sizes, "sizes", "", "sizes in bytes, such as 64,16k,8M (default: 4 bytes to 8 MiB)")
	f.StringVar(&b.ops, "ops", "", "operations, such as send/receive,all-reduce (default: all)")
	f.DurationVar(&b.budget, "budget", 0, "time for each operation and size (default: 150ms)")
	f.BoolVar(&b.json, "json", false, "print one JSON object")
	f.StringVar(&b.png, "png", "", "also draw the curves into this file")
	f.BoolVar(&b.rank, "rank", false, "be a process of --local")
	_ = f.MarkHidden("rank")
	return cmd
}

func (b *linkBenchmark) run(ctx context.Context, in io.Reader, out, status io.Writer) error {
	o, err := b.options()
	if err != nil {
		return err
	}
	if b.rank {
		return linkRank(ctx, in, out)
	}
	ways := 0
	for _, given := range []bool{b.local != 0, b.listen != "", b.peer != ""} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return errors.New("say what to measure with one of --local, --listen and --peer")
	}
	if b.secure {
		if b.transport != "tcp" && b.transport != "tcp+tls" {
			return fmt.Errorf("--tls does not go with --transport %s", b.transport)
		}
		b.transport = "tcp+tls"
	}
	if b.pin && b.local == 0 {
		return errors.New("--pin goes with --local only")
	}
	if !b.json {
		o.Progress = linkTable(out)
	}
	var res *linkbench.Result
	switch {
	case b.transport == "mem" && b.local != 0:
		res, err = b.inProcess(ctx, o)
	case b.transport == "mem":
		return errors.New("--transport mem goes with --local only")
	case b.transport != "tcp" && b.transport != "tcp+tls" && b.transport != "verbs":
		return fmt.Errorf("--transport %q is not tcp, tcp+tls, mem or verbs", b.transport)
	case b.local != 0:
		res, err = b.processes(ctx, o, status)
	case b.listen != "":
		res, err = b.await(ctx, o, status)
	default:
		res, err = b.dial(ctx, o, status)
	}
	if err != nil {
		return err
	}
	return b.report(res, out, status)
}

func (b *linkBenchmark) options() (o linkbench.Options, err error) {
	o.Budget = b.budget
	if b.sizes != "" {
		for _, s := range strings.Split(b.sizes, ",") {
			n, err := parseSize(s)
			if err != nil {
				return o, err
			}
			o.Sizes = append(o.Sizes, n)
		}
	}
	if b.ops != "" {
		for _, s := range strings.Split(b.ops, ",") {
			o.Ops = append(o.Ops, linkbench.Op(strings.TrimSpace(s)))
		}
	}
	return o.Complete()
}

// parseSize reads a number of bytes: 16384, 16k or 16K, 8M.
func parseSize(s string) (int, error) {
	t, factor := strings.TrimSpace(s), 1
	switch {
	case strings.HasSuffix(t, "k"), strings.HasSuffix(t, "K"):
		factor = 1 << 10
	case strings.HasSuffix(t, "M"):
		factor = 1 << 20
	}
	if factor > 1 {
		t = t[:len(t)-1]
	}
	n, err := strconv.Atoi(t)
	if err != nil || n < 0 || n > linkbench.MaxBytes {
		return 0, fmt.Errorf("--sizes: %q is no size up to %d", s, linkbench.MaxBytes)
	}
	return n * factor, nil
}

func (b *linkBenchmark) report(res *linkbench.Result, out, status io.Writer) error {
	if b.png != "" {
		f, err := os.Create(b.png)
		if err != nil {
			return err
		}
		if err := errors.Join(chart.PNG(f, res), f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(status, "The curves are in %s\n", b.png)
	}
	if b.json {
		return printJSON(out, res)
	}
	return nil
}

// linkTable prints rows as they come.
func linkTable(out io.Writer) func(linkbench.Row) {
	var last string
	return func(r linkbench.Row) {
		what := string(r.Op)
		if r.Pair != nil {
			what = fmt.Sprintf("%s, ranks %d and %d", r.Op, r.Pair[0], r.Pair[1])
		}
		if what != last {
			fmt.Fprintf(out, "%s\n%12s %12s %12s %12s %10s %8s\n", what, "bytes", "p50 µs", "p99 µs", "mean µs", "bus MB/s", "times")
			last = what
		}
		us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
		fmt.Fprintf(out, "%12d %12.2f %12.2f %12.2f %10.1f %8d\n", r.Bytes, us(r.P50), us(r.P99), us(r.Mean), r.Bandwidth/1e6, r.Iterations)
	}
}
