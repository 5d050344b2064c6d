package pairing

import (
	"errors"
	"fmt"
	"time"
)

// How a pairing ends without trust. Each is a sentence for people; nothing is
// kept, and another attempt may be begun, by a person.
var (
	// ErrRefused: the person here said no.
	ErrRefused = errors.New("the pairing was refused here")
	// ErrPeerRefused: the person there said no.
	ErrPeerRefused = errors.New("the pairing was refused on the other node")
	// ErrExpired: the two people did not both confirm in time.
	ErrExpired = fmt.Errorf("the pairing expired: it was not confirmed on both nodes within %v", Expiry)
	// ErrMismatch: the other side did not reveal what it had committed to, so
	// somebody tried to choose the digits.
	ErrMismatch = errors.New("the other node did not keep to what it had committed to; somebody may be between the two")
	// ErrReflected: the other side answers with this node's own key or
	// commitment.
	ErrReflected = errors.New("the other side only sends back what this node sent")
	// ErrBusy: one pairing at a time; end the other first.
	ErrBusy = errors.New("this node is in the middle of another pairing")
	// ErrPeerBusy: the same there; try again later.
	ErrPeerBusy = errors.New("the other node is in the middle of another pairing")
	// ErrPeerLocked: too many attempts failed there; wait, or begin from there.
	ErrPeerLocked = errors.New("too many pairings failed on the other node, so it takes none for a while; begin the pairing from there, or wait")
	// ErrDigits: the digits that were typed in are not those of this pairing.
	ErrDigits = errors.New("these are not the digits of this pairing")
	// ErrBroken: the connection ended in the middle; it wraps the cause.
	ErrBroken = errors.New("the connection to the other node broke")
	// ErrVersion: the other side speaks another version of the pairing.
	ErrVersion = errors.New("the other node pairs in another way; install the same Daisy on both")
	// ErrClosed: this node, or the other, was closed.
	ErrClosed = errors.New("the pairing was ended by closing Daisy")
)

// LockedError: too many attempts failed lately; wait until then.
type LockedError struct{ Until time.Time }

func (e *LockedError) Error() string {
	return fmt.Sprintf("pairings failed, so this node begins none before %s", e.Until.Format(time.TimeOnly))
}
