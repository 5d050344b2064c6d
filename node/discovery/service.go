package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/grandcat/zeroconf"

	"daisy/node/identity"
)

// Config says who is announced, where, and who is told of others.
type Config struct {
	ID       identity.ID
	Name     string
	Protocol int
	Port     uint16
	// Only restricts the announced addresses to this one, where the node listens
	// on one address; the zero value announces all.
	Only netip.Addr
	// Interfaces are the names of those to use; none means all suitable ones.
	Interfaces []string
	// Found is told of each announcement of another node, again and again as
	// long as it is there; Lost when one says goodbye (which anybody on the link
	// can forge). Both are called from two goroutines and must not block.
	Found func(Announcement)
	Lost  func(identity.ID)
	Log   *slog.Logger
}

// Service announces this node and looks for others until Close.
type Service struct {
	config Config
	cancel context.CancelFunc
	done   chan struct{}

	closeOnce sync.Once
}

// period is how often a settled Service asks who is there and looks at the
// interfaces again.
const period = 15 * time.Second

// Start begins. It fails when an interface that is named does not exist; with
// no interface to use just now it waits for one.
func Start(config Config) (*Service, error) {
	config.Name = CleanName(config.Name)
	if config.Name == "" {
		config.Name = config.ID.Short()
	}
	networks, err := networks(config.Interfaces)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Service{config: config, cancel: cancel, done: make(chan struct{})}
	r := &run{config: config}
	r.open(networks)
	go func() { // Close waits for it
		defer close(s.done)
		defer r.close()
		r.loop(ctx)
	}()
	return s, nil
}

// Close says goodbye and waits until Found and Lost are no longer called. It
// may be called more than once.
func (s *Service) Close() {
	s.closeOnce.Do(s.cancel)
	<-s.done
}

// run is the state of a Service's goroutine.
type run struct {
	config    Config
	networks  []network
	browser   *browser // nil while it cannot work
	announcer *zeroconf.Server
	trouble   string // the last one logged
}

func (r *run) loop(ctx context.Context) {
	for wait := time.Second; ; wait = min(2*wait, period) {
		if r.browser != nil {
			r.browser.ask()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		now, err := networks(r.config.Interfaces)
		if err != nil {
			r.complain(err)
			continue
		}
		if !same(now, r.networks) || r.browser == nil || r.announcer == nil {
			r.close()
			r.open(now)
		}
	}
}

// open announces and listens on the networks, as far as that works now.
func (r *run) open(networks []network) {
	r.networks = networks
	var err error
	if len(networks) == 0 {
		r.complain(errors.New("no network interface to find other nodes on"))
		return
	}
	if r.browser, err = openBrowser(networks, r.hear); err != nil {
		r.complain(err)
		return
	}
	if r.announcer, err = announce(r.config, networks); err != nil {
		r.complain(err)
		return
	}
	r.trouble = ""
}

func (r *run) close() {
	if r.announcer != nil {
		r.announcer.Shutdown()
		r.announcer = nil
	}
	if r.browser != nil {
		r.browser.close()
		r.browser = nil
	}
}

// complain logs a trouble once, until it changes or is over.
func (r *run) complain(err error) {
	if text := err.Error(); text != r.trouble {
		r.trouble = text
		r.config.Log.Warn("discovery", "error", err)
	}
}

// announce registers this node with a host name of our own: a second responder
// for the machine's real name would make macOS rename itself.
func announce(config Config, networks []network) (*zeroconf.Server, error) {
	addrs := addresses(networks, config.Only)
	if len(addrs) == 0 {
		return nil, fmt.Errorf("this node's address %s is on none of the network interfaces", config.Only)
	}
	var list []net.Interface
	for _, n := range networks {
		list = append(list, n.iface)
	}
	txt := txtRecord(Announcement{ID: config.ID, Name: config.Name, Protocol: config.Protocol})
	server, err := zeroconf.RegisterProxy(string(config.ID), serviceType, domain, int(config.Port),
		hostPrefix+string(config.ID), addrs, txt, list)
	if err != nil {
		return nil, fmt.Errorf("announcing this node: %w", err)
	}
	return server, nil
}

// hear passes on what the browser heard of others, with the addresses that can
// be dialled from here.
func (r *run) hear(h heard, at network) {
	if h.ID == r.config.ID {
		return
	}
	if h.goodbye {
		r.config.Lost(h.ID)
		return
	}
	a := h.Announcement
	for _, ip := range h.ips {
		if addr, ok := reachable(ip, at, r.networks); ok {
			a.Addrs = append(a.Addrs, netip.AddrPortFrom(addr, h.port))
		}
	}
	if len(a.Addrs) > 0 {
		slices.SortFunc(a.Addrs, netip.AddrPort.Compare)
		a.Addrs = slices.Compact(a.Addrs)
		r.config.Found(a)
	}
}
