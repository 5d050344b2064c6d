package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"daisy/app/session"
	"daisy/inference"
	"daisy/inference/chat"
	"daisy/inference/sample"

	"github.com/spf13/cobra"
)

// asking are the flags of commands that answer a prompt.
type asking struct {
	threads   int
	whole     bool // without a member the cluster ends
	context   int
	maxTokens int
	sampling  sample.Params
	system    string
	cache     string
	raw       bool
	json      bool
}

// defaultSystem is the system prompt where the user gives none. Small models
// need one: the templates' own defaults differ.
const defaultSystem = "You are a helpful assistant who answers in plain words."

// streamed is a piece of text that run --stream prints.
type streamed struct {
	Text string `json:"text"`
}

func (a *asking) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&a.threads, "threads", 0, "compute threads (default: one for each core)")
	f.IntVar(&a.context, "context", 0, fmt.Sprintf("positions in the KV cache (default: the model's own limit, at most %d)", inference.DefaultContext))
	f.IntVar(&a.maxTokens, "max-tokens", 0, "longest answer in tokens (default: as long as the context allows)")
	f.Float32Var(&a.sampling.Temperature, "temperature", 0, "0 always takes the likeliest token")
	f.IntVar(&a.sampling.TopK, "top-k", 0, "sample from the k likeliest tokens (0: all)")
	f.Float32Var(&a.sampling.TopP, "top-p", 0, "sample from the likeliest tokens that together have this probability (0: all)")
	f.Float32Var(&a.sampling.MinP, "min-p", 0, "sample from tokens at least this likely relative to the likeliest (0: all)")
	f.Float32Var(&a.sampling.Typical, "typical", 0, "sample from tokens of typical information, up to this probability (0: all)")
	f.Float32Var(&a.sampling.RepeatPenalty, "repeat-penalty", 0, "divide the logits of recent tokens by this (0 or 1: off)")
	f.Float32Var(&a.sampling.FrequencyPenalty, "frequency-penalty", 0, "subtract this from a recent token's logit for each time it came")
	f.Float32Var(&a.sampling.PresencePenalty, "presence-penalty", 0, "subtract this once from the logits of recent tokens")
	f.IntVar(&a.sampling.PenaltyWindow, "penalty-window", 64, "how many tokens are recent")
	f.Uint64Var(&a.sampling.Seed, "seed", 0, "of the sampling")
	f.StringVar(&a.cache, "kv-cache", "f16", "precision of the KV cache: f16, or q8_0 for half the memory")
	f.StringVar(&a.system, "system", defaultSystem, "system prompt; empty: what the model's template says")
	f.BoolVar(&a.json, "json", false, "print one JSON object")
}

// cacheType reads the flag.
func (a *asking) cacheType() (inference.CacheType, error) {
	switch a.cache {
	case "f16":
		return inference.CacheF16, nil
	case "q8_0":
		return inference.CacheQ8, nil
	}
	return 0, fmt.Errorf("--kv-cache %q is not f16 or q8_0", a.cache)
}

func (a *asking) request(prompt string) inference.Request {
	r := inference.Request{Sampling: a.sampling, MaxTokens: a.maxTokens}
	if a.raw {
		r.Prompt = prompt
	} else {
		if a.system != "" {
			r.Messages = append(r.Messages, chat.Message{Role: "system", Content: a.system})
		}
		r.Messages = append(r.Messages, chat.Message{Role: "user", Content: prompt})
	}
	return r
}

func runCommand(place *folder) *cobra.Command {
	var ask asking
	var group together
	var stream, keep bool
	cmd := &cobra.Command{
		Use:   "run MODEL [PROMPT]",
		Short: "Answer a prompt, alone or with other nodes",
		Long: "Answer a prompt on this machine, or with --with on several. MODEL is a .gguf file, or the name of one in the\n" +
			"models folder. Without PROMPT it is read from standard input. With --with or --keep question and answer stay\n" +
			"in the history.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			alone := len(group.with) == 0 && !keep
			switch {
			case ask.raw && !alone:
				return errors.New("--raw does not go with --keep or --with: a history holds questions and answers")
			case ask.raw && cmd.Flags().Changed("system"):
				return errors.New("--raw does not go with --system: there is no chat template to put it into")
			case stream && alone:
				return errors.New("--stream needs --keep or --with")
			}
			prompt, err := promptOf(args[1:], cmd.InOrStdin())
			if err != nil {
				return err
			}
			path, err := place.findModel(args[0])
			if err != nil {
				return err
			}
			out, status := cmd.OutOrStdout(), cmd.ErrOrStderr()
			if alone {
				return ask.run(cmd.Context(), path, prompt, out, status)
			}
			if group.dir, err = place.open(); err != nil {
				return err
			}
			group.threads = ask.threads
			show := func(text string) {
				switch {
				case stream:
					line, _ := json.Marshal(streamed{text})
					fmt.Fprintf(out, "%s\n", line)
				case !ask.json:
					fmt.Fprint(out, text)
				}
			}
			res, err := group.run(cmd.Context(), path, prompt, &ask, show, status)
			if err != nil {
				return err
			}
			if stream {
				return json.NewEncoder(out).Encode(res)
			}
			if ask.json {
				return printJSON(out, res)
			}
			fmt.Fprintln(out)
			fmt.Fprintln(status, statsLine(res.Stats))
			return nil
		},
	}
	ask.flags(cmd)
	group.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&ask.raw, "raw", false, "continue the prompt as it is, without the model's chat template; not with --keep or --with")
	f.BoolVar(&ask.whole, "whole", false, "with --with: end when a node is lost, instead of going on without it")
	f.BoolVar(&keep, "keep", false, "keep question and answer in the history")
	f.BoolVar(&stream, "stream", false, "with --keep or --with: a JSON object for each piece of text, the result last")
	return cmd
}

// promptOf takes the prompt from the command line or from r.
func promptOf(args []string, r io.Reader) (string, error) {
	const most = 16 << 20
	if len(args) > 0 {
		return args[0], nil
	}
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return "", fmt.Errorf("reading the prompt: %w", err)
	}
	if len(b) > most {
		return "", fmt.Errorf("the prompt is longer than %d bytes", most)
	}
	if strings.TrimSpace(string(b)) == "" {
		return "", errors.New("there is no prompt: give one as an argument or on standard input")
	}
	return string(b), nil
}

// noTemplate tells people why answers may be poor.
const noTemplate = "This file has no chat template, so a plain one is used."

// answer is what run prints with --json.
type answer struct {
	Answer    string `json:"answer"`
	Reasoning string `json:"reasoning,omitempty"`
	Model     string `json:"model"`
	inference.Stats
	Prefill     float64 `json:"prefill_tokens_per_second"`
	Decode      float64 `json:"decode_tokens_per_second"`
	LoadSeconds float64 `json:"load_seconds"`
	FirstToken  float64 `json:"first_token_seconds"` // after the start of loading
}

func (a *asking) run(ctx context.Context, path, prompt string, out, status io.Writer) error {
	cache, err := a.cacheType()
	if err != nil {
		return err
	}
	start := time.Now()
	e, err := inference.Load(ctx, path, inference.Options{Threads: a.threads, Context: a.context, Cache: cache})
	if err != nil {
		return err
	}
	defer e.Close()
	loaded := time.Since(start)
	if e.Info().NoTemplate && !a.raw {
		fmt.Fprintln(status, noTemplate)
	}
	var text, reasoning strings.Builder
	var first time.Duration
	stats, err := e.Chat(ctx, a.request(prompt), func(d inference.Delta) {
		d = session.Shown(d)
		if first == 0 {
			first = time.Since(start)
		}
		text.WriteString(d.Text)
		reasoning.WriteString(d.Reasoning)
		if !a.json {
			fmt.Fprint(out, d.Text)
		}
	})
	if !a.json && text.Len() > 0 {
		fmt.Fprintln(out)
	}
	if err != nil {
		return err
	}
	if !a.json {
		fmt.Fprintln(status, statsLine(stats))
		return nil
	}
	return printJSON(out, answer{text.String(), reasoning.String(), e.Info().Name, stats,
		stats.PrefillTokensPerSecond(), stats.DecodeTokensPerSecond(), loaded.Seconds(), first.Seconds()})
}

func statsLine(s inference.Stats) string {
	return fmt.Sprintf("[%d prompt tokens at %.1f tokens/s, %d answer tokens at %.1f tokens/s]",
		s.PromptTokens, s.PrefillTokensPerSecond(), s.GeneratedTokens, s.DecodeTokensPerSecond())
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// findModel takes a file's path or the name of one in the models folder.
func (f folder) findModel(name string) (string, error) {
	if _, err := os.Stat(name); err == nil || strings.ContainsRune(name, os.PathSeparator) {
		return name, err
	}
	dir, err := f.open()
	if err != nil {
		return "", err
	}
	for _, path := range []string{modelsPath(dir) + "/" + name, modelsPath(dir) + "/" + name + ".gguf"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no model %q: it is no file here and not in %s", name, modelsPath(dir))
}
