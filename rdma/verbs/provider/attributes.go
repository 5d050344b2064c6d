package provider

import "fmt"

// QPType is the service of a queue pair. The numbers here and below are those
// of libibverbs, the same on Linux and macOS.
type QPType uint32

const (
	RC QPType = 2 // reliable: acknowledged, retried; Linux
	UC QPType = 3 // unacknowledged; all that Apple's provider has
)

func (t QPType) String() string {
	switch t {
	case RC:
		return "RC"
	case UC:
		return "UC"
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// QPState is where a queue pair is on its way.
type QPState uint32

const (
	StateReset QPState = iota
	StateInit
	StateRTR // ready to receive
	StateRTS // ready to send
	StateSQD
	StateSQE
	StateErr
)

var stateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

func (s QPState) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint32(s))
}

// AttrMask names the members of QPAttr that Modify takes.
type AttrMask uint32

const (
	MaskState           AttrMask = 0x1
	MaskAccess          AttrMask = 0x8
	MaskPKeyIndex       AttrMask = 0x10
	MaskPort            AttrMask = 0x20
	MaskAV              AttrMask = 0x80
	MaskPathMTU         AttrMask = 0x100
	MaskTimeout         AttrMask = 0x200
	MaskRetryCount      AttrMask = 0x400
	MaskRNRRetry        AttrMask = 0x800
	MaskRQPSN           AttrMask = 0x1000
	MaskMaxRDAtomic     AttrMask = 0x2000
	MaskMinRNRTimer     AttrMask = 0x8000
	MaskSQPSN           AttrMask = 0x10000
	MaskMaxDestRDAtomic AttrMask = 0x20000
	MaskDestQPN         AttrMask = 0x100000
)

// Access is what registered memory or a queue pair allows.
type Access uint32

const (
	AccessLocalWrite  Access = 1
	AccessRemoteWrite Access = 2
	AccessRemoteRead  Access = 4
)

// SendFlags of one SEND.
type SendFlags uint32

const (
	SendSignaled SendFlags = 2 // it gives a completion; without, only its failure does
	SendInline   SendFlags = 8 // Apple's provider has none
)

// MTU is a path's largest packet, as a code.
type MTU uint32

const (
	MTU256 MTU = 1 + iota
	MTU512
	MTU1024
	MTU2048
	MTU4096
)

// Bytes is the size that the code stands for, or 0.
func (m MTU) Bytes() int {
	if m < MTU256 || m > MTU4096 {
		return 0
	}
	return 128 << m
}

// PortState tells whether a port has a peer.
type PortState uint32

const (
	PortDown   PortState = 1
	PortInit   PortState = 2
	PortArmed  PortState = 3
	PortActive PortState = 4 // cabled, and on Apple's the peer has RDMA enabled too
)

func (s PortState) String() string {
	switch s {
	case PortDown:
		return "PORT_DOWN"
	case PortInit:
		return "PORT_INIT"
	case PortArmed:
		return "PORT_ARMED"
	case PortActive:
		return "PORT_ACTIVE"
	}
	return fmt.Sprintf("port state %d", uint32(s))
}

// LinkLayer is what is under the verbs.
type LinkLayer uint8

const (
	LinkInfiniBand  LinkLayer = 1
	LinkEthernet    LinkLayer = 2
	LinkThunderbolt LinkLayer = 100 // Apple's provider: its rules and its errno numbers hold
)

func (l LinkLayer) String() string {
	switch l {
	case LinkInfiniBand:
		return "InfiniBand"
	case LinkEthernet:
		return "Ethernet"
	case LinkThunderbolt:
		return "Thunderbolt"
	}
	return fmt.Sprintf("link layer %d", uint8(l))
}

// DeviceAttr holds the limits that a device advertises. Apple's true ones may
// be lower: see the limits in choices.go.
type DeviceAttr struct {
	MaxMRBytes                  uint64
	MaxQP, MaxQPWR, MaxSGE      int
	MaxCQ, MaxCQE, MaxMR, MaxPD int
	Ports                       int
}

// PortAttr describes a port.
type PortAttr struct {
	State             PortState
	MaxMTU, ActiveMTU MTU
	GIDTableLen       int
	MaxMessageBytes   uint32
	LID               uint16
	LinkLayer         LinkLayer
}

// QPInit is what a queue pair is made with.
type QPInit struct {
	Type           QPType
	SendCQ, RecvCQ CQ // of the same context; may be one
	Cap            QPCap
}

// QPCap is the capacity of a queue pair. Apple's provider counts MaxSendWR and
// MaxRecvWR in frames of 4 KiB, not in posts.
type QPCap struct {
	MaxSendWR, MaxRecvWR   uint32
	MaxSendSGE, MaxRecvSGE uint32
	MaxInlineBytes         uint32
}

// QPAttr is what Modify sets: all members that the two services need.
type QPAttr struct {
	State     QPState
	PathMTU   MTU
	RQPSN     uint32 // must equal the peer's SQPSN
	SQPSN     uint32
	DestQPN   uint32
	Access    Access
	AV        AddressVector
	PKeyIndex uint16
	Port      uint8

	// RC alone.
	MaxRDAtomic, MaxDestRDAtomic               uint8
	MinRNRTimer, Timeout, RetryCount, RNRRetry uint8
}

// AddressVector is the way to the peer.
type AddressVector struct {
	DGID        GID   // the peer's
	SGIDIndex   uint8 // our own GID's place in our table
	HopLimit    uint8
	IsGlobal    bool
	DLID        uint16 // the peer's LID; 0 on Ethernet
	SL          uint8
	SrcPathBits uint8
	Port        uint8
}

// WCStatus is the outcome of a work request.
type WCStatus uint32

const (
	WCSuccess           WCStatus = 0
	WCLocalLength       WCStatus = 1 // the receive does not fit what was sent
	WCLocalQPOp         WCStatus = 2
	WCLocalProtection   WCStatus = 4 // the slot is not in registered memory
	WCFlushed           WCStatus = 5 // the queue pair failed before this request's turn
	WCLocalAccess       WCStatus = 8
	WCRemoteInvalid     WCStatus = 9 // the peer's receive does not fit what was sent (RC)
	WCRemoteAccess      WCStatus = 10
	WCRemoteOp          WCStatus = 11
	WCRetriesExceeded   WCStatus = 12 // the peer does not answer (RC)
	WCRNRetriesExceeded WCStatus = 13
)

func (s WCStatus) String() string {
	switch s {
	case WCSuccess:
		return "success"
	case WCLocalLength:
		return "length error: what was sent does not fit what was posted to receive it"
	case WCLocalQPOp:
		return "queue pair operation error"
	case WCLocalProtection:
		return "protection error: the memory is not registered"
	case WCFlushed:
		return "flushed: the queue pair had failed before"
	case WCLocalAccess:
		return "local access error"
	case WCRemoteInvalid:
		return "the peer posted a receive that does not fit"
	case WCRemoteAccess:
		return "remote access error"
	case WCRemoteOp:
		return "the peer's queue pair failed"
	case WCRetriesExceeded:
		return "the peer did not answer"
	case WCRNRetriesExceeded:
		return "the peer posted no receive"
	}
	return fmt.Sprintf("work completion status %d", uint32(s))
}

// Opcode says what kind of work request completed.
type Opcode uint32

const (
	OpSend Opcode = 0
	OpRecv Opcode = 128
)

// WC is a completion. With a bad Status only ID, Status and QPN count.
type WC struct {
	ID        uint64 // as posted
	Status    WCStatus
	Opcode    Opcode
	VendorErr uint32
	Bytes     uint32 // received
	QPN       uint32 // our own queue pair's number
}
