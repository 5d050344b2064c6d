package provider

import (
	"errors"
	"fmt"
)

// What errors of a provider match with errors.Is, and what to do next.
var (
	// ErrUnavailable: this machine has no verbs library. Use TCP.
	ErrUnavailable = errors.New("there is no RDMA library on this machine")
	// ErrNoDevice: no device of that name. Names change with ports and
	// reboots: list them again.
	ErrNoDevice = errors.New("there is no such RDMA device")
	// ErrQueueFull: the queue's frames are all in use. Poll completions, then
	// post again. If nothing is outstanding it will not pass: a real error.
	// PostSend and PostRecv return this very value.
	ErrQueueFull = errors.New("the queue is full: completions must be polled first")
	// ErrPortDown: the cable is out, or RDMA is off at its other end.
	ErrPortDown = errors.New("the port is down: check the cable, and that RDMA is enabled on the other machine")
	// ErrLimit: the device has no more of these. Trying again does not help.
	ErrLimit = errors.New("the device's limit is reached")
	// ErrUnsupported: the provider cannot do that at all.
	ErrUnsupported = errors.New("the provider does not support this")
	// ErrAddress: our GID or the peer's is not usable on this port.
	ErrAddress = errors.New("the GID is not usable on this port")
	// ErrUnreachable: the peer's GID did not answer on this port.
	ErrUnreachable = errors.New("the peer is not reachable through this port")
	// ErrStale: the kernel still holds what earlier processes leaked.
	ErrStale = errors.New("the driver still holds resources of earlier processes")
	// ErrInUse: it cannot be released before what was made from it.
	ErrInUse = errors.New("it is still in use")
	// ErrReleased: it was destroyed or closed before. A bug of the caller.
	ErrReleased = errors.New("it has been released already")
	// ErrInvalid: the provider refused the arguments.
	ErrInvalid = errors.New("the provider refused the arguments")
)

// Op is the call that failed.
type Op string

const (
	OpListDevices Op = "list the devices"
	OpOpen        Op = "open the device"
	OpQueryDevice Op = "query the device"
	OpQueryPort   Op = "query the port"
	OpQueryGID    Op = "query the GID"
	OpAllocPD     Op = "allocate a protection domain"
	OpRegMR       Op = "register memory"
	OpCreateCQ    Op = "create a completion queue"
	OpCreateQP    Op = "create a queue pair"
	OpModifyInit  Op = "move the queue pair to INIT"
	OpModifyRTR   Op = "move the queue pair to ready-to-receive"
	OpModifyRTS   Op = "move the queue pair to ready-to-send"
	OpModify      Op = "modify the queue pair"
	OpQueryQP     Op = "query the queue pair"
	OpPostSend    Op = "post a send"
	OpPostRecv    Op = "post a receive"
	OpPoll        Op = "poll completions"
	OpDestroyQP   Op = "destroy the queue pair"
	OpDeregMR     Op = "deregister memory"
	OpDestroyCQ   Op = "destroy the completion queue"
	OpDeallocPD   Op = "release the protection domain"
	OpClose       Op = "close the device"
)

// ModifyOp is the Op of a step to a state.
func ModifyOp(s QPState) Op {
	switch s {
	case StateInit:
		return OpModifyInit
	case StateRTR:
		return OpModifyRTR
	case StateRTS:
		return OpModifyRTS
	}
	return OpModify
}

// Error is a failed call of a provider.
type Error struct {
	Device string
	Op     Op
	// Errno is positive, as the provider's system numbers errors: Apple's for
	// Thunderbolt devices whatever this program runs on, else Linux's. 0 if the
	// call failed without one.
	Errno int
	// Apple tells which of the two it is.
	Apple bool
	// PortDown: the port was down when the call failed. Apple's calls give no
	// other hint of it.
	PortDown bool
}

// Error says what failed, the number, what that is known to mean and what
// helps.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: cannot %s", e.Device, e.Op)
	if e.Errno != 0 {
		s += ": errno " + e.number()
	}
	if m := e.meaning(); m.text != "" {
		s += ": " + m.text
	}
	return s
}

// Is matches the sentinels above.
func (e *Error) Is(target error) bool {
	kind := e.meaning().kind
	return kind != nil && kind == target
}

// NewError makes the error of a failed call, from its number with either sign:
// calls of the data path have been seen to give negative ones.
func NewError(device string, op Op, errno int, apple bool) error {
	if errno < 0 {
		errno = -errno
	}
	return &Error{Device: device, Op: op, Errno: errno, Apple: apple}
}
