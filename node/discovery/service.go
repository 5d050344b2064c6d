package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

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

// announceTurns is how often a Service says what it is without being asked,
// each time twice as long after the last.
const announceTurns = 3

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
	config   Config
	networks []network
	link     *link  // nil while there is nothing to speak on
	trouble  string // the last one logged
}

func (r *run) loop(ctx context.Context) {
	turn := 0
	for wait := time.Second; ; wait = min(2*wait, period) {
		if r.link != nil {
			if turn++; turn <= announceTurns {
				r.link.tell(r.link.announce)
			}
			r.link.ask()
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
		if r.link == nil || !same(now, r.networks) {
			r.close()
			r.open(now)
			wait, turn = time.Second, 0
		}
	}
}

// open announces and listens on the networks, as far as that works now.
func (r *run) open(networks []network) {
	r.networks = networks
	if len(networks) == 0 {
		r.complain(errors.New("no network interface to find other nodes on"))
		return
	}
	l, err := newLink(r.config, networks)
	if err == nil {
		l.hear = r.hear
		err = l.open()
	}
	if err != nil {
		r.complain(err)
		return
	}
	r.link, r.trouble = l, ""
}

func (r *run) close() {
	if r.link != nil {
		r.link.close()
		r.link = nil
	}
}

// newLink prepares what is said of this node on each network: the addresses it
// has there.
func newLink(config Config, networks []network) (*link, error) {
	l := &link{networks: networks, announce: map[int][]byte{}, goodbye: map[int][]byte{}}
	l.asked = func(packet []byte) bool { return isAbout(packet, config.ID) }
	a := Announcement{ID: config.ID, Name: config.Name, Protocol: config.Protocol}
	for _, n := range networks {
		ips := addresses([]network{n}, config.Only)
		if len(ips) == 0 {
			continue
		}
		ips = ips[:min(len(ips), maxAddresses)]
		index := n.iface.Index
		var err error
		if l.announce[index], err = announcement(a, ips, config.Port, lifetime); err != nil {
			return nil, fmt.Errorf("announcing this node: %w", err)
		}
		if l.goodbye[index], err = announcement(a, ips, config.Port, 0); err != nil {
			return nil, fmt.Errorf("announcing this node: %w", err)
		}
	}
	if len(l.announce) == 0 {
		return nil, fmt.Errorf("this node's address %s is on none of the network interfaces", config.Only)
	}
	return l, nil
}

// complain logs a trouble once, until it changes or is over.
func (r *run) complain(err error) {
	if text := err.Error(); text != r.trouble {
		r.trouble = text
		r.config.Log.Warn("discovery", "error", err)
	}
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
