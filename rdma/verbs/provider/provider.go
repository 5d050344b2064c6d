package provider

// Provider is a verbs library.
type Provider interface {
	// Devices returns the names of the devices, in the library's order.
	// None is no error.
	Devices() ([]string, error)
	// Open opens a device. A name that is not listed gives ErrNoDevice.
	Open(name string) (Context, error)
}

// Context is an open device. It is kept for the life of the process where
// possible, with its protection domain and memory: Apple's kernel has been seen
// to leak what is made and released again.
type Context interface {
	// Device is the name that it was opened by.
	Device() string
	QueryDevice() (DeviceAttr, error)
	// QueryPort describes a port; ports count from 1 and Apple's devices have
	// that one alone.
	QueryPort(port uint8) (PortAttr, error)
	// QueryGID reads one entry of a port's table. An index past its end is an
	// error, an empty entry is not. FindGID scans.
	QueryGID(port uint8, index int) (GIDEntry, error)
	// AllocPD fails with ErrPortDown when the port is down, as Apple's does.
	AllocPD() (PD, error)
	// CreateCQ makes a completion queue of at least depth entries.
	CreateCQ(depth int) (CQ, error)
	// Close comes last: everything made from it has been released before.
	Close() error
}

// PD is a protection domain: queue pairs use only memory of their own one.
type PD interface {
	// RegMR registers mem, which must stay mapped until Dereg and must not be
	// Go's own memory: NewSlab makes it. It must be registered before any queue
	// pair that uses it becomes ready to receive.
	RegMR(mem []byte, access Access) (MR, error)
	// CreateQP makes a queue pair in state RESET. The capacity granted may
	// differ from the one asked for: see QP.Query.
	CreateQP(init QPInit) (QP, error)
	Dealloc() error
}

// MR is registered memory.
type MR interface {
	// LKey names it in posts.
	LKey() uint32
	Dereg() error
}

// CQ is a completion queue.
type CQ interface {
	// Poll moves completions into wcs and returns how many, zero if there are
	// none. A completion with a bad Status is no error of Poll. At most
	// PollBatch come at once.
	Poll(wcs []WC) (int, error)
	// Destroy comes after the queue pairs that use it.
	Destroy() error
}

// QP is a queue pair.
type QP interface {
	// Num is its number, which the peer needs.
	Num() uint32
	// Modify moves it to attr.State, taking the members of attr that mask
	// names. ToInit, ToRTR and ToRTS make both. It may block for a minute on
	// the way to RTR.
	Modify(attr QPAttr, mask AttrMask) error
	// Query returns its state and the capacity that was granted.
	Query() (QPState, QPCap, error)
	// PostSend queues a SEND of a slot. The memory belongs to the provider until
	// the completion with this id, which says that the bytes left this machine
	// and that the peer had posted a receive: not that they have arrived. The
	// peer's receive must span as many frames (see Frames).
	//
	// ErrQueueFull means that the queue is full while work is outstanding: poll,
	// then post again. Any other error means that the queue pair is lost.
	PostSend(id uint64, s Slot, flags SendFlags) error
	// PostRecv queues a slot for the next SEND of the peer, in order; as for
	// PostSend.
	PostRecv(id uint64, s Slot) error
	// Destroy releases it; what is outstanding never completes, and what has
	// not arrived at the peer may be lost. Both sides agree beforehand.
	Destroy() error
}
