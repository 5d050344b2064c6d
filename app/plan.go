package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"daisy/inference/plan"
	"daisy/inference/plan/profile"

	"github.com/spf13/cobra"
)

// planning answers what Macs that need not be here would do with a model of which
// the header is enough.
type planning struct {
	model, nodes string
	usage        plan.Usage
	json         bool
}

func planCommand(place *folder) *cobra.Command {
	var p planning
	var cache string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Say how Macs would share a model, and how fast that would be",
		Long: "Say how Macs would share a model, and how fast that would be. Neither need be here: the Macs are\n" +
			"described in a file, and of the model its first bytes are enough. docs/plans.md explains both.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cache != "f16" && cache != "q8" {
				return fmt.Errorf("a KV cache of %q: f16 or q8", cache)
			}
			p.usage.Q8Cache = cache == "q8"
			a, err := p.answer(place)
			if err != nil {
				return err
			}
			if p.json {
				err = printJSON(cmd.OutOrStdout(), a)
			} else {
				err = a.print(cmd.OutOrStdout())
			}
			if err == nil && a.Best < 0 {
				err = errors.New("no plan works")
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.model, "model", "", "the .gguf file, or its beginning")
	f.StringVar(&p.nodes, "nodes", "", "the file that describes the Macs")
	f.IntVar(&p.usage.Context, "context", 0, "positions of each KV cache (default 4096, or the model's limit)")
	f.IntVar(&p.usage.Sequences, "sequences", 1, "requests that run at once")
	f.StringVar(&cache, "cache", "f16", "precision of the KV cache: f16 or q8")
	f.IntVar(&p.usage.Prompt, "prompt-tokens", 0, "length of the prompt that predictions are for (default 512)")
	f.IntVar(&p.usage.Answer, "answer-tokens", 0, "and of the answer (default 256)")
	f.BoolVar(&p.json, "json", false, "print one JSON object")
	_ = cmd.MarkFlagRequired("model")
	_ = cmd.MarkFlagRequired("nodes")
	return cmd
}

// planAnswer is what plan prints with --json.
type planAnswer struct {
	Model     string     `json:"model"`
	Bytes     float64    `json:"bytes"`
	Layers    int        `json:"layers"`
	Context   int        `json:"context"`
	Sequences int        `json:"sequences"`
	Cache     string     `json:"cache"`
	Prompt    int        `json:"prompt_tokens"`
	Answer    int        `json:"answer_tokens"`
	Macs      []planNode `json:"macs"`
	*plan.Choice
	Notes []string `json:"notes,omitempty"` // on what was not measured
}

type planNode struct {
	Name  string `json:"name"`
	Gives int64  `json:"gives_bytes"`
}

func (p *planning) answer(place *folder) (*planAnswer, error) {
	path, err := place.findModel(p.model)
	if err != nil {
		return nil, err
	}
	m, err := profile.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(p.nodes)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	nodes, err := plan.ReadNodes(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.nodes, err)
	}
	u := p.usage
	u.Leader = nodes.Leader
	u = u.Defaults(m)
	c, err := plan.Choose(m, nodes.Nodes, nodes.Net, u)
	if err != nil {
		return nil, err
	}
	a := &planAnswer{Model: m.Name, Bytes: m.Bytes(), Layers: len(m.Layers), Context: u.Context, Sequences: u.Sequences,
		Cache: "f16", Prompt: u.Prompt, Answer: u.Answer, Choice: c, Notes: nodes.Notes}
	if u.Q8Cache {
		a.Cache = "q8"
	}
	for _, n := range nodes.Nodes {
		a.Macs = append(a.Macs, planNode{n.Name, n.Memory})
	}
	return a, nil
}

func (a *planAnswer) print(w io.Writer) error {
	var b strings.Builder
	requests := "request"
	if a.Sequences > 1 {
		requests += "s at once"
	}
	fmt.Fprintf(&b, "%s, %.1f GB in %d layers. Context %d for %d %s, KV cache %s. Predictions for a prompt of %d tokens and an answer of %d.\n\n",
		a.Model, a.Bytes/1e9, a.Layers, a.Context, a.Sequences, requests, a.Cache, a.Prompt, a.Answer)
	a.printCandidates(&b)
	if c, ok := a.Chosen(); ok {
		a.printChosen(&b, c)
	}
	b.WriteString("\n")
	for _, r := range a.Reasons {
		fmt.Fprintf(&b, "Why: %s.\n", r)
	}
	for _, n := range a.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printCandidates writes those that work, the chosen one marked, then the others.
func (a *planAnswer) printCandidates(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	if a.Best >= 0 {
		fmt.Fprintln(t, "\tplan\tMacs\tdecode\tprefill\tfirst token")
	}
	for i, c := range a.Candidates {
		mark := " "
		if i == a.Best {
			mark = "*"
		}
		if c.Refused == nil {
			fmt.Fprintf(t, "%s\t%s\t%s\t%.1f tokens/s\t%.0f tokens/s\t%.2f s\n", mark, a.kind(c), a.names(c.Nodes), c.Decode, c.Prefill, c.FirstToken)
		}
	}
	_ = t.Flush() // a Builder takes everything
	for _, c := range a.Candidates {
		if c.Refused != nil {
			fmt.Fprintf(b, "   %s, %s: %s\n", a.kind(c), a.names(c.Nodes), c.Refused)
		}
	}
}

// printChosen writes what each Mac of the chosen plan holds.
func (a *planAnswer) printChosen(b *strings.Builder, c plan.Candidate) {
	fmt.Fprintf(b, "\n* %s:\n", a.kind(c))
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "Mac\tweights\tKV cache\tscratch\ttogether\tof\tlayers\theads\tcolumns\t")
	for r, n := range c.Nodes {
		m := c.Memory[r]
		stage, s, _ := c.Plan.Of(r)
		layers := c.Plan.Stages[stage].Layers
		fmt.Fprintf(t, "%s\t%.1f GB\t%.1f GB\t%.1f GB\t%.1f GB\t%.1f GB\t%s\t%s\t%s\t\n", a.Macs[n].Name, m.Weights/1e9, m.Cache/1e9,
			m.Scratch/1e9, m.Total()/1e9, float64(a.Macs[n].Gives)/1e9, span(layers), span(s.Heads), span(s.FFN))
	}
	_ = t.Flush() // a Builder takes everything
}

// kind names a candidate's kind, and the layers of its stages.
func (a *planAnswer) kind(c plan.Candidate) string {
	name := map[plan.Kind]string{plan.KindSolo: "solo", plan.KindTensorParallel: "tensor parallel", plan.KindPipeline: "pipeline", plan.KindMixed: "mixed"}[c.Kind]
	if len(c.Plan.Stages) < 2 {
		return name
	}
	var layers []string
	for _, s := range c.Plan.Stages {
		n := fmt.Sprint(s.Layers.Len())
		if len(s.Ranks) > 1 {
			n += fmt.Sprintf("×%d", len(s.Ranks))
		}
		layers = append(layers, n)
	}
	return name + " " + strings.Join(layers, "+")
}

func (a *planAnswer) names(nodes []int) string {
	var names []string
	for _, n := range nodes {
		names = append(names, a.Macs[n].Name)
	}
	return strings.Join(names, ", ")
}

// span writes a range as people count: first to last, from 0.
func span(r plan.Range) string { return fmt.Sprintf("%d–%d", r.Lo, r.Hi-1) }
