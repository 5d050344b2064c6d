package verbs

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"daisy/rdma"
	"daisy/rdma/verbs/abi"
	"daisy/rdma/verbs/provider"
)

// A Host owns the RDMA devices of a process. Devices, their protection domains
// and their registered memory stay open from group to group: Apple's kernel
// has been seen to lose what is made and released again and again. So there is
// one Host for each provider and process; New uses that of the machine's own
// library.
type Host struct {
	provider provider.Provider

	mu      sync.Mutex // guards the following
	devices map[string]*device
	closed  bool
}

// NewHost makes the owner of a provider's devices. It opens none yet.
func NewHost(p provider.Provider) *Host {
	return &Host{provider: p, devices: map[string]*device{}}
}

var machine struct {
	mu   sync.Mutex // guards the following
	host *Host
}

// machineHost loads the machine's library once.
func machineHost() (*Host, error) {
	machine.mu.Lock()
	defer machine.mu.Unlock()
	if machine.host == nil {
		library, err := abi.Load()
		if err != nil {
			return nil, err
		}
		machine.host = NewHost(library)
	}
	return machine.host, nil
}

// New is Host.Connect with the machine's own library. Without a library every
// pair is left to the base, unless that is refused by Options.Require.
func New(base rdma.Transport, o Options) (rdma.Transport, error) {
	if o.Off {
		return connect(nil, errOff, base, o)
	}
	h, err := machineHost()
	if err != nil {
		return connect(nil, err, base, o)
	}
	return h.Connect(base, o)
}

// Shutdown closes what New opened, for the end of the process: after the
// transports, and also when the process ends because of a signal, since a
// driver may keep what a process leaves behind. New may be called again.
func Shutdown() error {
	machine.mu.Lock()
	h := machine.host
	machine.host = nil
	machine.mu.Unlock()
	if h == nil {
		return nil
	}
	return h.Close()
}

// Connect makes this rank's transport over a base that is connected to the
// same ranks, and on which nobody else sends or receives until Connect returns.
// All ranks call it. It tries to bring up verbs for every pair; pairs that
// cannot have it use the base, and Links says why.
//
// The base belongs to the transport if Connect succeeds. If not, it has been
// ended on all ranks with the same error, and the caller closes it. Connect
// blocks until all ranks are there and their drivers have answered, at most
// Options.Timeout.
func (h *Host) Connect(base rdma.Transport, o Options) (rdma.Transport, error) {
	if o.Off {
		return connect(nil, errOff, base, o)
	}
	return connect(h, nil, base, o)
}

var (
	errHostClosed = errors.New("the RDMA devices of this process are closed")
	errOff        = errors.New("RDMA is switched off on this machine")
)

// open returns a device, opening it the first time.
func (h *Host) open(name string) (*device, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errHostClosed
	}
	if d := h.devices[name]; d != nil {
		return d, d.usable()
	}
	ctx, err := h.provider.Open(name)
	if err != nil {
		return nil, err
	}
	d := &device{name: name, ctx: ctx}
	h.devices[name] = d
	return d, nil
}

// hostPatience is how long Close waits for a driver that hangs.
const hostPatience = time.Second

// Close closes all devices. The transports are closed before. A device whose
// driver hangs stays open, which is an error.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	var errs []error
	for name, d := range h.devices {
		if err := d.close(hostPatience); err != nil {
			errs = append(errs, fmt.Errorf("closing %s: %w", name, err))
		}
	}
	clear(h.devices)
	return errors.Join(errs...)
}
