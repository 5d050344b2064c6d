package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"daisy/inference/machine"
	"daisy/node/control"
	"daisy/node/discovery"
	"daisy/node/identity"
	"daisy/node/models"
	"daisy/node/pairing"
	"daisy/node/trust"
	"daisy/rdma/verbs"
)

// ID names a node for ever: the hash of its public key.
type ID = identity.ID

// Config says what a node is and does. Dir is needed; the rest has defaults.
type Config struct {
	// Dir holds the node's key; it is made if needed. One process at a time.
	Dir string
	// Name is what people call this machine; by default its host name.
	Name string
	// Interfaces are the names of those to find peers on; by default all but
	// tunnels. With loopback alone the node listens there alone.
	Interfaces []string
	// Listen is "host:port"; by default a free port on all addresses.
	Listen string
	// Models are those that this node can load; by default none.
	Models *models.Library
	// Consent asks the owner whether this node may follow a leader. It may take
	// until ctx ends, and must return then. By default it says no.
	Consent func(ctx context.Context, inv Invitation) bool
	// Trust are nodes to trust as if they were paired, for this run: all of them
	// belong to whoever starts this one.
	Trust []ID
	// Threads compute when this node follows; 0 is the engine's default.
	Threads int
	// SharedCores: other nodes compute on this machine's cores too.
	SharedCores bool
	// RDMA says whether groups use it between their ranks; by default they do
	// where they can.
	RDMA RDMA
	// Log is told what a developer wants to know; by default nobody is.
	Log *slog.Logger
}

// Invitation is what Consent decides about. The members see the text of the
// prompts.
type Invitation struct {
	Leader     Peer
	Model      string
	ModelBytes int64
	Nodes      []string // the names of all members, by rank
	Epoch      uint64
}

// Node is this machine among its peers.
type Node struct {
	config   Config
	identity *identity.Identity
	lock     *os.File
	server   *control.Server
	dialer   *control.Dialer
	finder   *discovery.Service
	upgrade  upgrade
	beatPort func(port uint16) uint16 // what others are told of a heartbeat's port; tests make it wrong
	events   *events
	peers    *peers
	trust    *trust.Store
	gate     pairing.Gate

	ctx    context.Context // ends when Close begins
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // goroutines that end by ctx

	mu         sync.Mutex // guards the fields below, and adding to clusters
	closed     bool
	taken      string // who leads the cluster this node is in or asked into; "" is free
	cluster    *Cluster
	consented  *consent             // to a group that has ended
	attempt    *pairing.Attempt     // whose digits are to be shown
	assemblies map[uint64]*assembly // by epoch
	clusters   sync.WaitGroup       // memberships
	closeOnce  sync.Once
	silence    context.CancelFunc // ends the events
	speaking   sync.WaitGroup
}

// Start brings this machine up as a node. It blocks on the disk; ctx bounds the
// start only.
func Start(ctx context.Context, config Config) (_ *Node, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if config.Dir == "" {
		return nil, errors.New("a node needs a folder for its key")
	}
	if err := config.RDMA.check(); err != nil {
		return nil, fmt.Errorf("starting the node: %w", err)
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Models == nil {
		config.Models = models.New()
	}
	if config.Consent == nil {
		config.Consent = func(context.Context, Invitation) bool { return false }
	}
	n := &Node{
		config: config, events: newEvents(), assemblies: map[uint64]*assembly{},
		upgrade:  verbs.New,
		beatPort: func(port uint16) uint16 { return port },
	}
	if n.lock, err = lockFolder(config.Dir); err != nil {
		return nil, fmt.Errorf("starting the node: %w", err)
	}
	defer func() {
		if err != nil {
			n.lock.Close()
			err = fmt.Errorf("starting the node: %w", err)
		}
	}()
	if n.identity, err = identity.Load(config.Dir); err != nil {
		return nil, err
	}
	if n.trust, err = trust.Open(config.Dir); err != nil {
		return nil, err
	}
	if err := n.trust.Hand(config.Trust...); err != nil {
		return nil, err
	}
	n.config.Name = ownName(config.Name, n.identity.ID())
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.peers = newPeers(n)
	for _, e := range n.trust.List() {
		n.peers.pin(e.ID, e.Name, e.Addrs...)
	}
	n.dialer = control.NewDialer(n.identity, n.peers.addrs)
	n.server, err = control.Listen(control.ServerConfig{
		Identity: n.identity, Listen: listenAddress(config), Log: config.Log,
		Hello: n.hello, Admit: n.admit, Pair: n.pairedBy, Group: n.invited, Data: n.dataFrom,
	})
	if err != nil {
		n.dialer.Close()
		return nil, err
	}
	listen := n.server.Addr()
	var only netip.Addr
	if addr := listen.Addr().Unmap(); !addr.IsUnspecified() {
		only = addr
	}
	n.finder, err = discovery.Start(discovery.Config{
		ID: n.identity.ID(), Name: n.config.Name, Protocol: control.Protocol, Port: listen.Port(), Only: only,
		Interfaces: config.Interfaces, Found: n.peers.found, Lost: n.peers.goodbye, Log: config.Log,
	})
	if err != nil {
		n.server.Close()
		n.dialer.Close()
		return nil, err
	}
	n.work.Go(n.peers.watch)
	var speak context.Context
	speak, n.silence = context.WithCancel(context.Background())
	n.speaking.Go(func() { n.events.deliver(speak) })
	return n, nil
}

// Close leaves the cluster, if any, says goodbye to the peers and waits until
// every goroutine of the node has ended; Consent's ctx ends. It may be called
// more than once, but not from an event handler.
func (n *Node) Close() error {
	n.closeOnce.Do(func() {
		n.mu.Lock()
		n.closed = true
		n.mu.Unlock()
		n.cancel(ErrClosed)
		n.clusters.Wait()
		n.work.Wait()
		n.server.Close()
		n.dialer.Close()
		n.finder.Close() // last: peers that hear the goodbye look whether it is true
		n.silence()
		n.speaking.Wait()
		n.lock.Close()
	})
	return nil
}

// Self describes this node.
func (n *Node) Self() Peer {
	return Peer{
		ID: n.identity.ID(), Name: n.config.Name, Addrs: n.ownAddrs(), State: PeerReady,
		Protocol: control.Protocol, Cores: runtime.NumCPU(), MemoryBytes: machine.MemoryBytes(),
	}
}

// Cluster is the one this node is in, as leader or member, or nil.
func (n *Node) Cluster() *Cluster {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cluster
}

// hello is what this node says of itself; a stranger learns its name alone.
func (n *Node) hello(to ID) control.Hello {
	if !n.trust.Has(to) {
		return control.Hello{ID: n.identity.ID(), Name: n.config.Name}
	}
	n.mu.Lock()
	busy := n.taken != ""
	n.mu.Unlock()
	return control.Hello{
		ID: n.identity.ID(), Name: n.config.Name, Paired: true, Cores: runtime.NumCPU(), MemoryBytes: machine.MemoryBytes(), Busy: busy,
	}
}

// claim takes this node for a cluster led by leader. Whoever gets no error must
// call release when the membership is over.
func (n *Node) claim(leader string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	if n.taken != "" {
		return fmt.Errorf("%w, led by %s", ErrBusy, n.taken)
	}
	n.taken = leader
	n.clusters.Add(1)
	return nil
}

func (n *Node) release() {
	n.mu.Lock()
	n.taken = ""
	was := n.cluster
	n.cluster = nil
	n.mu.Unlock()
	if was != nil {
		n.events.emit(ClusterChanged{})
		n.events.emit(PeersChanged{})
		n.peers.recheck(was.current().invited)
	}
	n.clusters.Done()
}

// publish makes c the cluster this node is in.
func (n *Node) publish(c *Cluster) {
	n.mu.Lock()
	n.cluster = c
	n.mu.Unlock()
	n.events.emit(ClusterChanged{})
	n.events.emit(PeersChanged{})
}

// ownAddrs are where others may dial this node.
func (n *Node) ownAddrs() []netip.AddrPort {
	listen := n.server.Addr()
	if addr := listen.Addr().Unmap(); !addr.IsUnspecified() {
		return []netip.AddrPort{netip.AddrPortFrom(addr, listen.Port())}
	}
	addrs, err := discovery.Addresses(n.config.Interfaces)
	if err != nil {
		n.config.Log.Debug("own addresses", "error", err)
	}
	var out []netip.AddrPort
	for _, a := range addrs {
		out = append(out, netip.AddrPortFrom(a, listen.Port()))
	}
	return out
}

func ownName(name string, id ID) string {
	if name == "" {
		host, _ := os.Hostname() // without one, the ID serves
		name, _, _ = strings.Cut(host, ".")
	}
	if name = discovery.CleanName(name); name == "" {
		name = id.Short()
	}
	return name
}

func listenAddress(config Config) string {
	switch {
	case config.Listen != "":
		return config.Listen
	case len(config.Interfaces) > 0 && !slices.ContainsFunc(config.Interfaces, func(name string) bool { return !discovery.IsLoopback(name) }):
		return "127.0.0.1:0"
	}
	return ":0"
}
