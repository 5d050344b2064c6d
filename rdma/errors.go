package rdma

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is the cause after Close on this rank. The caller is using a
	// group that it gave up: nothing to repair.
	ErrClosed = errors.New("group is closed")
	// ErrPeerLost matches every *PeerLostError. The caller makes a new group
	// without that rank, under a new epoch.
	ErrPeerLost = errors.New("peer is lost")
	// ErrMismatch is the cause when ranks did not make the same calls. It is a
	// bug, or two versions of a program in one group; a new group of the same
	// members will fail again.
	ErrMismatch = errors.New("ranks do not agree on the operation")
	// ErrAborted matches every *RemoteError: another rank ended the group, for
	// a reason of its own. The caller may make a new group.
	ErrAborted = errors.New("another rank ended the group")
)

// PeerLostError says which rank was lost: its process died, its connection
// broke, or it left while it was needed.
type PeerLostError struct {
	Rank  int
	Cause error
}

func (e *PeerLostError) Error() string { return fmt.Sprintf("rank %d is lost: %v", e.Rank, e.Cause) }

// Unwrap gives what this rank or the reporting one saw.
func (e *PeerLostError) Unwrap() error { return e.Cause }

// Is makes errors.Is(err, ErrPeerLost) true.
func (e *PeerLostError) Is(target error) bool { return target == ErrPeerLost }

// MismatchError says what a peer sent and what this rank was waiting for.
type MismatchError struct {
	Rank                int // the peer
	Got, Want           Tag
	GotBytes, WantBytes uint64 // lengths of the message itself
}

func (e *MismatchError) Error() string { return e.seenBy("this rank") }

func (e *MismatchError) seenBy(whom string) string {
	s := fmt.Sprintf("rank %d called %v, %s %v", e.Rank, e.Got, whom, e.Want)
	if e.Got == e.Want {
		s += fmt.Sprintf("; its part is %d bytes, expected %d", e.GotBytes, e.WantBytes)
	}
	return s
}

// Is makes errors.Is(err, ErrMismatch) true.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// RemoteError is the cause when another rank ended the group: by cancelling a
// collective, by a mismatch that it noticed, or by an error of its own.
type RemoteError struct {
	Rank   int    // the rank that ended the group
	Reason string // its words, printable and short
	code   abortCode
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("rank %d ended the group: %s", e.Rank, e.Reason)
}

// Is makes ErrAborted match, and ErrMismatch when that was the reason. The
// other rank's cancelled context does not match context.Canceled here: it was
// not this rank's.
func (e *RemoteError) Is(target error) bool {
	return target == ErrAborted || (target == ErrMismatch && e.code == abortMismatch)
}
