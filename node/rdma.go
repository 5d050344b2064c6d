package node

import (
	"context"
	"fmt"
	"path/filepath"

	"daisy/rdma"
	"daisy/rdma/verbs"
)

// RDMA says whether a node uses RDMA between the ranks of its groups. The nodes
// of a group need not say the same: a pair uses RDMA when both ends do.
type RDMA string

const (
	RDMAAuto    RDMA = ""        // where both ends of a pair can; else TCP
	RDMAOff     RDMA = "off"     // never
	RDMARequire RDMA = "require" // a group without it between this node and every other fails
)

func (r RDMA) check() error {
	switch r {
	case RDMAAuto, RDMAOff, RDMARequire:
		return nil
	}
	return fmt.Errorf("RDMA %q is not off or require", string(r))
}

// upgrade is verbs.New, or a host's Connect. Until the process ends what it has
// opened stays open; whoever owns the process calls verbs.Shutdown.
type upgrade func(base rdma.Transport, o verbs.Options) (rdma.Transport, error)

// overRDMA moves the pairs of ranks that can use RDMA to it; all ranks take
// part, and the rest stay with base, which belongs to the result. It waits for
// all ranks, and for their drivers. After an error base has ended and is the
// caller's to close.
func (a *assembly) overRDMA(ctx context.Context, base rdma.Transport) (rdma.Transport, error) {
	stop := context.AfterFunc(ctx, func() { base.Abort(context.Cause(ctx)) })
	defer stop()
	config := a.node.config
	t, err := a.node.upgrade(base, verbs.Options{
		Epoch: a.epoch, Off: config.RDMA == RDMAOff, Require: config.RDMA == RDMARequire,
		MarkerDir: filepath.Join(config.Dir, "rdma"),
	})
	if err != nil {
		return nil, err
	}
	links, ok := t.(rdma.Linker)
	if !ok {
		return t, nil
	}
	for _, l := range links.Links() {
		config.Log.Info("link", "epoch", a.epoch, "rank", l.Peer, "node", a.members[l.Peer].Name, "kind", l.Kind,
			"device", l.Device, "latency", l.Latency, "bytes_per_second", int64(l.Bandwidth), "not_faster_because", l.Reason)
	}
	return t, nil
}
