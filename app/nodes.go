package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"daisy/app/local"
	"daisy/node"
	"daisy/node/trust"

	"github.com/spf13/cobra"
)

func nodesCommand(place *folder) *cobra.Command {
	var flags nodeFlags
	var asJSON bool
	var forget, always, never, ask string
	var find time.Duration
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "List the nodes found and paired, and where each stands",
		Long: "List the nodes found and paired, and where each stands; or change what a paired one may do.\n" +
			"The running Daisy answers; when none runs, a node is started for the moment.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := place.open()
			if err != nil {
				return err
			}
			return flags.reach(cmd.Context(), dir, cmd.ErrOrStderr(), find, func(dial dialLocal) error {
				for name, change := range map[string]func(*local.Client, string) error{
					forget: (*local.Client).Forget,
					always: func(c *local.Client, n string) error { return c.SetConsent(n, trust.Always) },
					never:  func(c *local.Client, n string) error { return c.SetConsent(n, trust.Never) },
					ask:    func(c *local.Client, n string) error { return c.SetConsent(n, trust.Ask) },
				} {
					if name == "" {
						continue
					}
					c, err := dial()
					if err != nil {
						return err
					}
					err = change(c, name)
					c.Close()
					if err != nil {
						return err
					}
				}
				c, err := dial()
				if err != nil {
					return err
				}
				defer c.Close()
				rows, err := c.Nodes()
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), rows)
				}
				printRows(cmd.OutOrStdout(), rows)
				return nil
			})
		},
	}
	flags.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.DurationVar(&find, "find", 2*time.Second, "how long to look for nodes when no Daisy runs")
	f.StringVar(&forget, "forget", "", "withdraw the trust in this node: it becomes a stranger")
	f.StringVar(&always, "always", "", "accept this leader's invitations without asking")
	f.StringVar(&never, "never", "", "decline this leader's invitations without asking")
	f.StringVar(&ask, "ask", "", "ask about this leader's invitations each time")
	return cmd
}

// dialLocal connects to the running node, for one request.
type dialLocal func() (*local.Client, error)

// reach calls do with a way to the node of the folder. When none runs, it starts
// one and gives it the time to find others.
func (n *nodeFlags) reach(ctx context.Context, dir string, stderr io.Writer, find time.Duration, do func(dialLocal) error) error {
	dial := func() (*local.Client, error) { return local.Dial(ctx, dir) }
	probe, err := dial()
	if err == nil {
		probe.Close()
		return do(dial)
	}
	if !errors.Is(err, local.ErrNotRunning) {
		return err
	}
	lib, err := n.library(dir)
	if err != nil {
		return err
	}
	started, err := n.start(ctx, dir, lib, nil, stderr)
	if err != nil {
		return err
	}
	defer started.Close()
	server, err := local.Serve(started, dir)
	if err != nil {
		return err
	}
	defer server.Close()
	select {
	case <-time.After(find):
	case <-ctx.Done():
		return ctx.Err()
	}
	return do(dial)
}

// rowWords is a row's state as people read it.
func rowWords(r local.Row) string {
	if r.State == local.StateAbsent {
		return "paired, not found in the network"
	}
	return stateWords(node.Peer{State: node.PeerState(r.State), Reason: r.Reason, Paired: r.Paired})
}

// stateWords is where a peer stands, in words.
func stateWords(p node.Peer) string {
	words := map[node.PeerState]string{
		node.PeerFound:        "found, not reached yet",
		node.PeerUnpaired:     "not paired",
		node.PeerRefused:      "refused",
		node.PeerReady:        "paired",
		node.PeerMember:       "paired, in this cluster",
		node.PeerBusy:         "paired, in another cluster",
		node.PeerUnreachable:  "unreachable because",
		node.PeerIncompatible: "version differs",
	}[p.State]
	switch {
	case p.State == node.PeerMember && !p.Paired:
		return "in this cluster, not paired"
	case p.Reason == "" || p.State == node.PeerBusy:
		return words
	case p.State == node.PeerUnreachable:
		return words + " " + p.Reason
	}
	return words + ": " + p.Reason
}

func printRows(out io.Writer, rows []local.Row) {
	if len(rows) == 0 {
		fmt.Fprintln(out, "No other nodes were found, and none are paired.")
	}
	wide := 0
	for _, r := range rows {
		wide = max(wide, len([]rune(r.Name)))
	}
	for _, r := range rows {
		pad := strings.Repeat(" ", wide-len([]rune(r.Name)))
		fmt.Fprintf(out, "%s%s  %s  %s", r.Name, pad, r.ID.Short(), rowWords(r))
		if r.Consent == trust.Always || r.Consent == trust.Never {
			fmt.Fprintf(out, " (invitations: %s)", r.Consent)
		}
		fmt.Fprintln(out)
	}
}
