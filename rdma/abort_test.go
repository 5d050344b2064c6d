package rdma_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"daisy/rdma"

	"github.com/stretchr/testify/require"
)

func TestAbortKeepsTheCause(t *testing.T) {
	lost := &rdma.PeerLostError{Rank: 2, Cause: errors.New("it closed the connection")}
	mismatch := &rdma.MismatchError{Rank: 1, Got: rdma.Tag{Op: rdma.OpBarrier}, Want: rdma.Tag{Op: rdma.OpAllReduce, Bytes: 8}}
	for _, c := range []struct {
		name  string
		cause error
		is    []error
		not   []error
		text  string
	}{
		{"lost", fmt.Errorf("all-reduce: %w", lost), []error{rdma.ErrPeerLost, rdma.ErrAborted}, []error{rdma.ErrMismatch},
			"rank 2 is lost: rank 3 ended the group: it closed the connection"},
		{"mismatch", mismatch, []error{rdma.ErrMismatch, rdma.ErrAborted}, []error{rdma.ErrPeerLost},
			"rank 3 ended the group: rank 1 called barrier #0 of 0 bytes, rank 3 all-reduce #0 of 8 bytes"},
		{"cancelled", context.Canceled, []error{rdma.ErrAborted}, []error{rdma.ErrMismatch, rdma.ErrPeerLost, context.Canceled},
			"rank 3 ended the group: context canceled"},
		{"unprintable", errors.New("a\x00\n\xffé\u202e"), []error{rdma.ErrAborted}, nil, "rank 3 ended the group: a???é?"},
		{"long", errors.New(strings.Repeat("x", 5000)), []error{rdma.ErrAborted}, nil,
			"rank 3 ended the group: " + strings.Repeat("x", 512)},
	} {
		t.Run(c.name, func(t *testing.T) {
			notice := rdma.AppendAbort(nil, 3, c.cause)
			require.LessOrEqual(t, len(notice), rdma.MaxAbort)
			got := rdma.ParseAbort(notice, 3, 4)
			require.EqualError(t, got, c.text)
			for _, e := range c.is {
				require.ErrorIs(t, got, e)
			}
			for _, e := range c.not {
				require.NotErrorIs(t, got, e)
			}
			// Passed on by another rank, it says the same of the same rank.
			again := rdma.ParseAbort(rdma.AppendAbort(nil, 1, got), 1, 4)
			require.EqualError(t, again, strings.Replace(c.text, "lost: rank 3", "lost: rank 1", 1))
		})
	}
}

func FuzzParseAbort(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(make([]byte, 8))
	f.Add(rdma.AppendAbort(nil, 3, errors.New("reason")))
	f.Add(rdma.AppendAbort(nil, 3, &rdma.PeerLostError{Rank: 1, Cause: errors.New("gone")}))
	f.Add(rdma.AppendAbort(nil, 3, rdma.ErrMismatch))
	f.Add(rdma.AppendAbort(nil, 900, errors.New("no such rank")))
	f.Add(append(rdma.AppendAbort(nil, 0, errors.New("")), bytes.Repeat([]byte{0xff}, 600)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		cause := rdma.ParseAbort(b, 1, 4)
		if cause == nil {
			t.Fatal("no cause")
		}
		// What was understood survives being passed on.
		notice := rdma.AppendAbort(nil, 1, cause)
		if len(notice) > rdma.MaxAbort {
			t.Fatalf("notice of %d bytes", len(notice))
		}
		again := rdma.ParseAbort(notice, 1, 4)
		if errors.Is(cause, rdma.ErrPeerLost) != errors.Is(again, rdma.ErrPeerLost) ||
			errors.Is(cause, rdma.ErrMismatch) != errors.Is(again, rdma.ErrMismatch) {
			t.Fatalf("%v became %v", cause, again)
		}
		if twice := rdma.AppendAbort(nil, 1, again); !bytes.Equal(notice, twice) {
			t.Fatalf("%q became %q", notice, twice)
		}
	})
}
