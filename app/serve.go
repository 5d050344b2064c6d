package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"daisy/node"

	"github.com/spf13/cobra"
)

func serveCommand(place *folder) *cobra.Command {
	var flags nodeFlags
	var consent string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node without a screen",
		Long: "Run a node without a screen: others find it, and with its owner's consent it computes its share of their models.\n" +
			"The members of a cluster see the text of the prompts.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			agree, err := consentFrom(consent, cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			dir, err := place.open()
			if err != nil {
				return err
			}
			lib, err := flags.library(dir)
			if err != nil {
				return err
			}
			n, err := flags.start(cmd.Context(), dir, lib, agree, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer n.Close()
			return watch(cmd.Context(), n, asJSON, cmd.OutOrStdout())
		},
	}
	flags.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&flags.threads, "threads", 0, "compute threads (default: one for each core)")
	f.StringVar(&consent, "consent", "ask", "answer to invitations: ask (on the terminal), always, never")
	f.BoolVar(&asJSON, "json", false, "print a JSON object per line")
	return cmd
}

// consentFrom turns the flag into the owner's answer.
func consentFrom(mode string, in io.Reader, out io.Writer) (func(context.Context, node.Invitation) bool, error) {
	switch mode {
	case "always":
		return func(context.Context, node.Invitation) bool { return true }, nil
	case "never":
		return func(context.Context, node.Invitation) bool { return false }, nil
	case "ask":
		return askOn(in, out), nil
	}
	return nil, fmt.Errorf("--consent %q is not ask, always or never", mode)
}

// askOn asks on a terminal, one question at a time. Lines come from one reader
// for the node's lifetime; a line answers the question that was open when it was
// read, and no other: not one that came later, nor one that is over.
func askOn(in io.Reader, out io.Writer) func(context.Context, node.Invitation) bool {
	t := &terminal{in: in, ended: make(chan struct{})}
	go t.read() // ends with its input, at the latest with the process
	return func(ctx context.Context, inv node.Invitation) bool {
		answer := t.open()
		fmt.Fprintf(out, "%s asks this machine to compute a share of %s, with %s.\nMembers of the cluster see the text of the prompts. Join? [y/N] ",
			inv.Leader.Name, inv.Model, strings.Join(inv.Nodes, ", "))
		line, ok := t.wait(ctx, answer)
		if !ok {
			fmt.Fprintln(out, "(too late)")
		}
		line = strings.ToLower(strings.TrimSpace(line))
		return line == "y" || line == "yes"
	}
}

// terminal reads lines all the time, so that none waits for the next question.
type terminal struct {
	in       io.Reader
	question atomic.Pointer[chan string] // takes one line; nil: none is open
	heard    *chan string                // the one open when the latest bytes came; of read's goroutine
	ended    chan struct{}               // closed at the end of the input
}

// Read notes for which question the bytes come.
func (t *terminal) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	t.heard = t.question.Load()
	return n, err
}

func (t *terminal) read() {
	defer close(t.ended)
	for s := bufio.NewScanner(t); s.Scan(); {
		if t.heard == nil {
			continue
		}
		select {
		case *t.heard <- s.Text():
		default: // it has its answer
		}
	}
}

// open begins a question, before it is shown.
func (t *terminal) open() *chan string {
	answer := make(chan string, 1)
	t.question.Store(&answer)
	return &answer
}

// wait returns the question's answer; "" when there will be none, and false when
// ctx ended before.
func (t *terminal) wait(ctx context.Context, question *chan string) (line string, ok bool) {
	defer t.question.CompareAndSwap(question, nil)
	select {
	case line = <-*question:
	case <-t.ended:
		select {
		case line = <-*question:
		default:
		}
	case <-ctx.Done():
		return "", false
	}
	return line, true
}

// serving is what serve prints with --json, one object per line.
type serving struct {
	Event   string   `json:"event"` // listening, joined, left
	ID      node.ID  `json:"id,omitempty"`
	Name    string   `json:"name,omitempty"`
	Address []string `json:"address,omitempty"`
	Model   string   `json:"model,omitempty"`
	Rank    int      `json:"rank,omitempty"`
	Weights int64    `json:"weight_bytes,omitempty"`
	Reason  string   `json:"reason,omitempty"`
}

// watch prints what the node does until ctx ends.
func watch(ctx context.Context, n *node.Node, asJSON bool, out io.Writer) error {
	say := func(s serving) {
		if asJSON {
			line, _ := json.Marshal(s)
			fmt.Fprintf(out, "%s\n", line)
			return
		}
		fmt.Fprintln(out, s.words())
	}
	changed := make(chan struct{}, 1)
	cancel := n.Subscribe(func(e node.Event) {
		if _, ok := e.(node.ClusterChanged); ok {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})
	defer cancel()
	self := n.Self()
	listening := serving{Event: "listening", ID: self.ID, Name: self.Name}
	for _, a := range self.Addrs {
		listening.Address = append(listening.Address, a.String())
	}
	say(listening)
	var in *node.Cluster
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		c := n.Cluster()
		if c == in {
			continue
		}
		if in != nil {
			reason := ""
			if err := in.Err(); err != nil && !errors.Is(err, node.ErrClosed) {
				reason = oneLine(err)
			}
			say(serving{Event: "left", Reason: reason})
		}
		if in = c; c != nil {
			joined := serving{Event: "joined", Model: c.Model().Name}
			for _, m := range c.Members() {
				if m.ID == self.ID {
					joined.Rank, joined.Weights = m.Rank, m.WeightBytes
				}
			}
			say(joined)
		}
	}
}

func (s serving) words() string {
	switch s.Event {
	case "listening":
		return fmt.Sprintf("%s (%s) is ready at %s", s.Name, s.ID, strings.Join(s.Address, ", "))
	case "joined":
		return fmt.Sprintf("Rank %d of %s, holding %.1f MB of weights", s.Rank, s.Model, float64(s.Weights)/1e6)
	}
	if s.Reason == "" {
		return "The cluster has ended"
	}
	return "The cluster has ended: " + s.Reason
}
