package fake

import (
	"net/netip"

	"daisy/rdma/verbs/provider"
)

// Port is a device of a node, such as rdma_en2 of "a". Its port is number 1.
type Port struct{ Node, Device string }

// Options of a device; zero values have a meaning.
type Options struct {
	IPv4     netip.Addr // zero: a link-local address of its own
	GIDIndex int        // of the IPv4-mapped GID, 1 or 2; zero: 1 and 2 in turn
	Budget   int        // frames outstanding each way, at most 1023; zero: 1008
}

// defaultBudget is what was counted on Apple's: 63 posts of 64 KiB.
const defaultBudget = 63 * 16

// Or gives the options with their defaults for the n-th device of a fabric.
func (o Options) Or(n int) Options {
	if !o.IPv4.IsValid() {
		o.IPv4 = netip.AddrFrom4([4]byte{169, 254, byte(1 + n/200), byte(1 + n%200)})
	}
	if o.GIDIndex == 0 {
		o.GIDIndex = 1 + n%2
	}
	if o.Budget == 0 {
		o.Budget = defaultBudget
	}
	return o
}

// Call is what Fail can make fail.
type Call string

const (
	CallOpen       Call = "open_device"
	CallQueryPort  Call = "query_port"
	CallQueryGID   Call = "query_gid"
	CallQueryDev   Call = "query_device"
	CallAllocPD    Call = "alloc_pd"
	CallRegMR      Call = "reg_mr"
	CallCreateCQ   Call = "create_cq"
	CallCreateQP   Call = "create_qp"
	CallModifyInit Call = "modify_init"
	CallModifyRTR  Call = "modify_rtr"
	CallModifyRTS  Call = "modify_rts"
	CallQueryQP    Call = "query_qp"
	CallPostSend   Call = "post_send"
	CallPostRecv   Call = "post_recv"
	CallPollCQ     Call = "poll_cq"
	CallDestroyQP  Call = "destroy_qp"
	CallDeregMR    Call = "dereg_mr"
	CallDestroyCQ  Call = "destroy_cq"
	CallDeallocPD  Call = "dealloc_pd"
	CallClose      Call = "close_device"
	// CallSendWC and CallRecvWC make a completion come with a status, which
	// takes the place of the errno.
	CallSendWC Call = "send_wc"
	CallRecvWC Call = "recv_wc"
	// CallRTRDelay makes the step to ready-to-receive take so many milliseconds,
	// given in place of the errno.
	CallRTRDelay Call = "rtr_delay_ms"
)

// Fabric is nodes, their devices and the cables between them.
type Fabric interface {
	// AddDevice gives a node one more device, without a cable.
	AddDevice(p Port, o Options) error
	// Wire plugs a cable in: both ports become active.
	Wire(a, b Port) error
	// Pull pulls the cable that is in p: both ports go down, and queue pairs
	// that used it are silent for ever, also after Wire.
	Pull(p Port) error
	// Freeze is what a dead machine looks like from outside: its ports stay
	// active and nothing more comes from it.
	Freeze(node string) error
	// Fail makes the nth call from now on fail with an errno, once.
	Fail(p Port, call Call, nth, errno int) error
	// Provider is the library as a node has it.
	Provider(node string) (provider.Provider, error)
	// Close ends the fabric. Its providers are not used any more.
	Close() error
}
