package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"daisy/node"
	"daisy/node/identity"
	"daisy/node/models"

	"github.com/spf13/cobra"
)

// nodeFlags are the flags of commands that run a node.
type nodeFlags struct {
	name        string
	interfaces  []string
	listen      string
	threads     int
	sharedCores bool
	models      []string
	rdma        string
	trust       []string
	verbose     bool
}

func (n *nodeFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&n.name, "name", "", "what people call this machine (default: its host name)")
	f.StringSliceVar(&n.interfaces, "interface", nil, "network interfaces to find peers on (default: all but tunnels)")
	f.StringVar(&n.listen, "listen", "", "address to listen on, host:port (default: all addresses, a free port)")
	f.StringSliceVar(&n.models, "model-file", nil, "a .gguf file to offer besides those in the models folder; may be repeated")
	f.StringSliceVar(&n.trust, "trust", nil, "ID of a node to trust as if paired, for this run; may be repeated")
	f.BoolVar(&n.sharedCores, "shared-cores", false, "other nodes compute on this machine's cores too")
	f.StringVar(&n.rdma, "rdma", "auto", "use RDMA between machines: auto (where both ends can), off, require")
	f.BoolVar(&n.verbose, "verbose", false, "log what happens to standard error")
	_ = f.MarkHidden("shared-cores")
}

// library is the models folder of dir and the files named by flags.
func (n *nodeFlags) library(dir string) (*models.Library, error) {
	folder := modelsPath(dir)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	lib := models.New(folder)
	for _, path := range n.models {
		if _, err := lib.Add(path); err != nil {
			return nil, err
		}
	}
	return lib, nil
}

func (n *nodeFlags) start(ctx context.Context, dir string, lib *models.Library, consent func(context.Context, node.Invitation) bool, stderr io.Writer) (*node.Node, error) {
	config := node.Config{
		Dir: dir, Name: n.name, Interfaces: n.interfaces, Listen: n.listen,
		Models: lib, Consent: consent, Threads: n.threads, SharedCores: n.sharedCores,
	}
	if n.rdma != "auto" {
		if config.RDMA = node.RDMA(n.rdma); config.RDMA != node.RDMAOff && config.RDMA != node.RDMARequire {
			return nil, fmt.Errorf("--rdma %q is not auto, off or require", n.rdma)
		}
	}
	for _, text := range n.trust {
		id, err := identity.ParseID(text)
		if err != nil {
			return nil, fmt.Errorf("--trust: %w", err)
		}
		config.Trust = append(config.Trust, id)
	}
	if n.verbose {
		config.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return node.Start(ctx, config)
}

// findPeers waits until every wanted peer, by ID or name, has been found ready.
func findPeers(ctx context.Context, n *node.Node, wanted []string) ([]node.ID, error) {
	changed := make(chan struct{}, 1)
	cancel := n.Subscribe(func(node.Event) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer cancel()
	for {
		ids, missing := matchPeers(n.Peers(), wanted)
		if missing == "" {
			return ids, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("no node %s was found: %w", missing, ctx.Err())
		}
	}
}

// matchPeers returns the IDs of the wanted peers, or words on one that is not
// there or not ready.
func matchPeers(peers []node.Peer, wanted []string) (ids []node.ID, missing string) {
	for _, w := range wanted {
		i := slices.IndexFunc(peers, func(p node.Peer) bool { return string(p.ID) == w || p.Name == w })
		if i < 0 {
			return nil, w
		}
		if p := peers[i]; p.State != node.PeerReady {
			return nil, fmt.Sprintf("%s (%s)", w, stateWords(p))
		}
		ids = append(ids, peers[i].ID)
	}
	return ids, ""
}
