package verbs

import (
	"errors"
	"fmt"
)

// ErrRequired is returned by Connect when Options.Require is set and some
// pair of this rank has no verbs; the error says which pair and why. The
// group must be given up, or made again without the option.
var ErrRequired = errors.New("RDMA was asked for and is not there")

// errClosing is what operations meet when Close is about to end the transport.
var errClosing = errors.New("this rank is leaving the group")

// LinkError is the cause when the RDMA link between two ranks fails while the
// group runs: the cable was pulled, or the provider reported an error. Both
// ranks may be well: a new group of the same members is worth trying, and will
// use the base transport for this pair if the cable stays away.
type LinkError struct {
	Peer   int
	Device string // this rank's end of the cable
	Cause  error
}

func (e *LinkError) Error() string {
	return fmt.Sprintf("the RDMA link to rank %d over %s failed: %v", e.Peer, e.Device, e.Cause)
}

// Unwrap gives what the provider said.
func (e *LinkError) Unwrap() error { return e.Cause }
