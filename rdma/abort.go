package rdma

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The body of an abort notice, the same for every transport, little-endian:
//
//	0  uint8   code: 1 a rank is lost, 2 mismatch, 3 any other reason
//	1  uint8   zero, three times
//	4  uint32  the rank that is lost (code 1) or that ended the group (2, 3)
//	8  …       reason, UTF-8, at most 512 bytes
//
// A rank that ends because of somebody else's notice passes the same one on.

// MaxAbort is the length in bytes of the longest abort notice.
const MaxAbort = 8 + maxReason

const maxReason = 512

type abortCode uint8

const (
	abortLost     abortCode = 1
	abortMismatch abortCode = 2
	abortOther    abortCode = 3
)

// AppendAbort appends the notice by which rank self tells others of cause.
func AppendAbort(b []byte, self int, cause error) []byte {
	code, rank, reason := abortOther, self, ""
	var lost *PeerLostError
	var remote *RemoteError
	var mismatch *MismatchError
	switch {
	case errors.As(cause, &lost):
		code, rank = abortLost, lost.Rank
		if errors.As(lost.Cause, &remote) {
			reason = remote.Reason
		} else {
			reason = fmt.Sprint(lost.Cause)
		}
	case errors.As(cause, &remote):
		code, rank, reason = remote.code, remote.Rank, remote.Reason
	case errors.As(cause, &mismatch):
		code, reason = abortMismatch, mismatch.seenBy(fmt.Sprintf("rank %d", self))
	case errors.Is(cause, ErrMismatch):
		code, reason = abortMismatch, cause.Error()
	default:
		reason = fmt.Sprint(cause)
	}
	b = append(b, byte(code), 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(rank))
	return append(b, printable(reason)...)
}

// ParseAbort turns a notice from the peer `from` into the cause with which the
// group ends here. A notice that makes no sense is an error of that kind too:
// the peer counts as lost. It never allocates more than MaxAbort for the text.
func ParseAbort(b []byte, from, worldSize int) error {
	bad := func(why string) error {
		return &PeerLostError{Rank: from, Cause: errors.New("it sent a malformed abort notice: " + why)}
	}
	if len(b) < 8 || len(b) > MaxAbort {
		return bad("wrong length")
	}
	if b[1]|b[2]|b[3] != 0 {
		return bad("reserved bytes are set")
	}
	rank := binary.LittleEndian.Uint32(b[4:])
	if uint64(rank) >= uint64(worldSize) {
		return bad("no such rank")
	}
	reason := printable(string(b[8:]))
	switch code := abortCode(b[0]); code {
	case abortLost:
		return &PeerLostError{Rank: int(rank), Cause: &RemoteError{Rank: from, Reason: reason, code: abortLost}}
	case abortMismatch, abortOther:
		return &RemoteError{Rank: int(rank), Reason: reason, code: code}
	}
	return bad("unknown code")
}

// printable cuts a text from elsewhere to what may go into a log or a window.
func printable(s string) string {
	if len(s) > maxReason {
		s = s[:maxReason]
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?' // one byte, so that the text does not grow
		}
		return r
	}, s)
}
