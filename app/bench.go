package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"daisy/inference"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// benchmark measures as docs/benchmarks.md defines it: exact token counts, the
// end of a sequence banned, decode = (n-1) / (t_last - t_first), no prefix reuse.
type benchmark struct {
	model                     string
	threads                   int
	prompt, gen, repeat, warm int
	sequences                 int
	json                      bool
}

func benchCommand() *cobra.Command {
	var b benchmark
	several := nodesBenchmark{benchmark: &b}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure prefill and decode speed on this machine",
		Long: "Measure prefill and decode speed on this machine: of one process, or with --nodes of several that share the\n" +
			"model as a plan says, beside what was predicted for it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if several.rank {
				return nodeRank(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
			}
			if several.nodes != 0 {
				return several.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			if err := several.alone(cmd.Flags()); err != nil {
				return err
			}
			r, err := b.run(cmd.Context())
			if err != nil {
				return err
			}
			if b.json {
				return printJSON(cmd.OutOrStdout(), r)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s, %d threads, %d sequences: prefill of %d tokens %.1f tokens/s, decode of %d tokens %.1f tokens/s (medians of %d)\n",
				r.Model, r.Threads, r.Sequences, r.PromptTokens, r.Prefill, r.GenTokens, r.Decode, b.repeat)
			return nil
		},
	}
	b.flags(cmd.Flags())
	several.flags(cmd.Flags())
	cmd.AddCommand(benchLinkCommand(), benchLatencyCommand())
	return cmd
}

func (b *benchmark) flags(f *pflag.FlagSet) {
	f.StringVar(&b.model, "model", "", "the .gguf file")
	f.IntVar(&b.threads, "threads", 0, "compute threads (default: one for each core)")
	f.IntVar(&b.prompt, "prompt-tokens", 128, "length of the prompt")
	f.IntVar(&b.gen, "gen-tokens", 64, "length of the answer")
	f.IntVar(&b.repeat, "repeat", 3, "how often to measure; the median counts")
	f.IntVar(&b.warm, "warm-up", 1, "rounds before those that count")
	f.IntVar(&b.sequences, "sequences", 1, "sequences decoded together; with more than one, prefill is not measured")
	f.BoolVar(&b.json, "json", false, "print one JSON object")
}

type benchResult struct {
	Model        string    `json:"model"`
	Threads      int       `json:"threads"`
	Context      int       `json:"context"`
	Sequences    int       `json:"sequences"`
	PromptTokens int       `json:"prompt_tokens"`
	GenTokens    int       `json:"gen_tokens"`
	Prefill      float64   `json:"prefill_tokens_per_second"`
	Decode       float64   `json:"decode_tokens_per_second"`
	LoadSeconds  float64   `json:"load_seconds"`
	Weights      int64     `json:"weight_bytes"`
	Cache        int64     `json:"cache_bytes"`
	Anonymous    int64     `json:"resident_anonymous_bytes"` // 0: unknown on this system
	File         int64     `json:"resident_file_bytes"`
	Prefills     []float64 `json:"prefill_samples"`
	Decodes      []float64 `json:"decode_samples"`
}

// check refuses what cannot be measured.
func (b *benchmark) check() error {
	const most = 1 << 24 // of anything that is counted
	if b.model == "" {
		return errors.New("--model is missing")
	}
	if b.prompt < 1 || b.gen < 2 || b.repeat < 1 || b.warm < 0 || b.sequences < 1 {
		return errors.New("a benchmark needs a prompt token, two answer tokens, one sequence, one round that counts and no fewer than 0 before")
	}
	if max(b.prompt, b.gen, b.repeat, b.warm, b.sequences) > most {
		return fmt.Errorf("a benchmark counts to %d at most", most)
	}
	return nil
}

func (b *benchmark) run(ctx context.Context) (*benchResult, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	start := time.Now()
	e, err := inference.Load(ctx, b.model, inference.Options{Threads: b.threads, Context: b.prompt + b.gen, Sequences: b.sequences})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	r := &benchResult{Model: e.Info().Name, Threads: e.Info().Threads, Context: b.prompt + b.gen, Sequences: b.sequences, PromptTokens: b.prompt, GenTokens: b.gen}
	r.LoadSeconds = time.Since(start).Seconds()
	r.Weights, r.Cache = e.Info().WeightBytes, e.Info().CacheBytes
	for i := range b.warm + b.repeat {
		prefill, decode, err := e.Measure(ctx, i, b.sequences, b.prompt, b.gen)
		if err != nil {
			return nil, err
		}
		if i >= b.warm {
			r.Prefills = append(r.Prefills, prefill)
			r.Decodes = append(r.Decodes, decode)
		}
	}
	r.Anonymous, r.File = residentBytes()
	r.Prefill, r.Decode = median(r.Prefills), median(r.Decodes)
	return r, nil
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
