package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"daisy/app/local"
	"daisy/node"
	"daisy/node/pairing"

	"github.com/spf13/cobra"
)

func serveCommand(place *folder) *cobra.Command {
	var flags nodeFlags
	var consent string
	var asJSON, pairOnce bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node without a screen",
		Long: "Run a node without a screen: others find it, and those it is paired with may, with its owner's\n" +
			"consent, have it compute its share of their models. To pair, see daisy pair. The members of a cluster see the text of the prompts.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			term := newTerminal(cmd.InOrStdin(), cmd.ErrOrStderr())
			agree, err := consentFrom(consent, term)
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
			commands, err := local.Serve(n, dir)
			if err != nil {
				return err
			}
			defer commands.Close()
			return watch(cmd.Context(), n, asJSON, cmd.OutOrStdout(), decider(pairOnce, term))
		},
	}
	flags.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&flags.threads, "threads", 0, "compute threads (default: one for each core)")
	f.StringVar(&consent, "consent", "ask", "answer to invitations: ask (on the terminal), always, never")
	f.BoolVar(&pairOnce, "pair-once", false, "confirm the first pairing that another machine begins within ten minutes; whoever is first is trusted, so compare its digits with those printed here")
	f.BoolVar(&asJSON, "json", false, "print a JSON object per line")
	return cmd
}

// consentFrom turns the flag into the owner's answer.
func consentFrom(mode string, t *terminal) (func(context.Context, node.Invitation) bool, error) {
	switch mode {
	case "always":
		return func(context.Context, node.Invitation) bool { return true }, nil
	case "never":
		return func(context.Context, node.Invitation) bool { return false }, nil
	case "ask":
		return t.consent, nil
	}
	return nil, fmt.Errorf("--consent %q is not ask, always or never", mode)
}

// newTerminal asks on a terminal, one question at a time. Lines come from one
// reader for the node's lifetime; a line answers the question that was open when
// it was read, and no other: not one that came later, nor one that is over.
func newTerminal(in io.Reader, out io.Writer) *terminal {
	t := &terminal{in: in, out: out, ended: make(chan struct{})}
	go t.read() // ends with its input, at the latest with the process
	return t
}

// consent asks about an invitation.
func (t *terminal) consent(ctx context.Context, inv node.Invitation) bool {
	answer := t.open()
	fmt.Fprintf(t.out, "%s asks this machine to compute a share of %s, with %s.\nMembers of the cluster see the text of the prompts. Join? [y/N] ",
		inv.Leader.Name, inv.Model, strings.Join(inv.Nodes, ", "))
	line, ok := t.wait(ctx, answer)
	if !ok {
		fmt.Fprintln(t.out, "(too late)")
	}
	return saysYes(line)
}

func saysYes(line string) bool {
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}

// terminal reads lines all the time, so that none waits for the next question.
type terminal struct {
	in       io.Reader
	out      io.Writer
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
	Event   string   `json:"event"` // listening, pairing, joined, left
	ID      node.ID  `json:"id,omitempty"`
	Name    string   `json:"name,omitempty"`
	Address []string `json:"address,omitempty"`
	Model   string   `json:"model,omitempty"`
	Rank    int      `json:"rank,omitempty"`
	Weights int64    `json:"weight_bytes,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Digits  string   `json:"digits,omitempty"` // of a pairing that ID began
}

// watch prints what the node does until ctx ends, and has decide called for each
// pairing that another node begins.
func watch(ctx context.Context, n *node.Node, asJSON bool, out io.Writer, decide func(context.Context, *pairing.Attempt)) error {
	var deciding sync.WaitGroup
	defer deciding.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
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
		switch e.(type) {
		case node.ClusterChanged, node.PairingChanged:
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
	var shown *pairing.Attempt
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		if a := n.Pairing(); a != nil && a != shown {
			if shown = a; a.Incoming {
				say(serving{Event: "pairing", ID: a.Peer, Name: a.PeerName, Digits: a.Digits})
				deciding.Go(func() { decide(ctx, a) })
			}
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
	case "pairing":
		return fmt.Sprintf("%s (%s) wants to pair with this machine. Its screen must show the digits %s %s", s.Name, s.ID.Short(), s.Digits[:3], s.Digits[3:])
	case "joined":
		return fmt.Sprintf("Rank %d of %s, holding %.1f MB of weights", s.Rank, s.Model, float64(s.Weights)/1e6)
	}
	if s.Reason == "" {
		return "The cluster has ended"
	}
	return "The cluster has ended: " + s.Reason
}
