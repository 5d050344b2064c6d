package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"daisy/app/history"
	"daisy/app/session"
	"daisy/inference"
	"daisy/node"

	"github.com/spf13/cobra"
)

// together answers a prompt with other nodes: this one leads.
type together struct {
	nodeFlags
	with []string
	find time.Duration
	dir  string // of identity, models and history
}

func (g *together) flags(cmd *cobra.Command) {
	g.nodeFlags.flags(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&g.with, "with", nil, "nodes to answer with, by name or ID; their owners must agree")
	f.DurationVar(&g.find, "find", 30*time.Second, "how long to look for them")
}

// togetherAnswer is what run --with and demo print with --json.
type togetherAnswer struct {
	answer
	Nodes      []rankOf     `json:"nodes"`
	History    historyPlace `json:"history"`
	NoTemplate bool         `json:"no_template,omitempty"` // a plain one was used
}

type rankOf struct {
	ID          node.ID `json:"id"`
	Name        string  `json:"name"`
	Rank        int     `json:"rank"`
	WeightBytes int64   `json:"weight_bytes"`
	PID         int     `json:"pid,omitempty"` // of a demo's node
}

type historyPlace struct {
	Path string `json:"path"`
	Row  int64  `json:"row"` // of table messages
}

// run finds the nodes, forms the cluster, asks, and keeps question and answer in
// the history. What came before an error is in the result and in the history.
func (g *together) run(ctx context.Context, path, prompt string, ask *asking, show func(string), status io.Writer) (res togetherAnswer, err error) {
	start := time.Now()
	store, err := history.Open(ctx, historyPath(g.dir))
	if err != nil {
		return res, err
	}
	defer store.Close()
	lib, err := g.library(g.dir)
	if err != nil {
		return res, err
	}
	model, err := lib.Add(path)
	if err != nil {
		return res, err
	}
	n, err := g.start(ctx, g.dir, lib, nil, status)
	if err != nil {
		return res, err
	}
	defer n.Close()
	finding, cancel := context.WithTimeout(ctx, g.find)
	defer cancel()
	members, err := findPeers(finding, n, g.with)
	if err != nil {
		return res, err
	}
	cache, err := ask.cacheType()
	if err != nil {
		return res, err
	}
	cluster, err := n.Join(ctx, members, model, node.JoinOptions{Whole: ask.whole, Context: ask.context, Threads: ask.threads, Cache: cache})
	if err != nil {
		return res, err
	}
	defer cluster.Close()
	for _, m := range cluster.Members() {
		res.Nodes = append(res.Nodes, rankOf{ID: m.ID, Name: m.Name, Rank: m.Rank, WeightBytes: m.WeightBytes})
		fmt.Fprintf(status, "Rank %d: %s holds %.1f MB of weights\n", m.Rank, m.Name, float64(m.WeightBytes)/1e6)
	}
	if len(res.Nodes) != len(g.with)+1 {
		return res, fmt.Errorf("only %d of %d nodes are in the cluster", len(res.Nodes), len(g.with)+1)
	}
	if res.NoTemplate = cluster.Info().NoTemplate; res.NoTemplate {
		fmt.Fprintln(status, noTemplate)
	}
	res.LoadSeconds = time.Since(start).Seconds()
	res.Model = model.Name
	res.History.Path = store.Path()

	s := session.New(session.Config{Store: store, System: ask.system, Sampling: ask.sampling, MaxTokens: ask.maxTokens})
	defer s.Close()
	s.Use(timed{cluster, &res.Stats}, model.Name)
	conv, err := store.CreateConversation(ctx, prompt)
	if err != nil {
		return res, err
	}
	message, err := s.Ask(ctx, conv.ID, prompt, func(u session.Update) {
		switch u.Kind {
		case session.Began:
			res.History.Row = u.Answer.ID
		case session.Text:
			if res.FirstToken == 0 {
				res.FirstToken = time.Since(start).Seconds()
			}
			show(u.Delta.Text)
		}
	})
	res.Answer, res.Reasoning = message.Content, message.Reasoning
	res.Prefill, res.Decode = res.PrefillTokensPerSecond(), res.DecodeTokensPerSecond()
	if err == nil && message.Status != history.StatusDone {
		err = errors.New(message.Error)
	}
	return res, err
}

// timed keeps the exact statistics of the answer it passes on.
type timed struct {
	session.Asker
	stats *inference.Stats
}

func (t timed) Chat(ctx context.Context, req inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
	stats, err := t.Asker.Chat(ctx, req, emit)
	*t.stats = stats
	return stats, err
}
