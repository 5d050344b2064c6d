package fake_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/provider"
)

// TestThreads: both ways at once, posts and polls of each side on threads of
// their own, more than every ring holds.
func TestThreads(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		a, b := pair(t, f, fake.Options{}, provider.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1})
		const messages = 9000
		var wg sync.WaitGroup
		errs := make(chan error, 2)
		for _, s := range []*side{a, b} {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if err := s.stream(messages); err != nil {
					errs <- err
				}
			}()
		}
		wg.Wait()
		close(errs)
		require.NoError(t, <-errs)
	})
}

// stream sends and receives so many numbered slots and checks their order.
func (s *side) stream(messages int) error {
	const slots = 16
	free := make(chan uint64, slots) // of SENDs
	for i := range uint64(slots) {
		free <- i
		if err := s.recv(i, high+int(i)*4096, 4096); err != nil {
			return err
		}
	}
	posted := make(chan error, 1)
	go func() { // the posting thread of SENDs
		for i := range messages {
			slot := <-free
			binary.LittleEndian.PutUint64(s.mem[slot*4096:], uint64(i))
			if err := s.send(slot, int(slot)*4096, 4096); err != nil {
				posted <- err
				return
			}
		}
		posted <- nil
	}()
	wcs := make([]provider.WC, 8)
	until := time.Now().Add(time.Minute)
	for got, sent := 0, 0; got < messages || sent < messages; {
		n, err := s.cq.Poll(wcs)
		if err != nil {
			return err
		}
		if n == 0 {
			if time.Now().After(until) {
				return errors.New("it stands still")
			}
			runtime.Gosched()
		}
		for _, w := range wcs[:n] {
			switch {
			case w.Status != provider.WCSuccess:
				return fmt.Errorf("message %d: %v", got, w.Status)
			case w.Opcode == provider.OpSend:
				sent++
				free <- w.ID
			default:
				if v := binary.LittleEndian.Uint64(s.mem[high+w.ID*4096:]); v != uint64(got) {
					return fmt.Errorf("message %d came for %d", v, got)
				}
				got++
				if err := s.recv(w.ID, high+int(w.ID)*4096, 4096); err != nil {
					return err
				}
			}
		}
	}
	return <-posted
}

// TestNoAllocation: the data path.
func TestNoAllocation(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	both(t, func(t *testing.T, f fake.Fabric) {
		a, b := pair(t, f, fake.Options{}, usual)
		wcs := make([]provider.WC, 4)
		require.Zero(t, testing.AllocsPerRun(200, func() {
			for range 4 {
				_ = b.recv(1, high, 4096)
				_ = a.send(2, 0, 4096)
				_, _ = a.cq.Poll(wcs)
				_, _ = b.cq.Poll(wcs)
				_, _ = b.cq.Poll(wcs)
			}
		}))
		require.NoError(t, b.recv(1, high, 4096))
		require.NoError(t, a.send(2, 0, 4096))
		a.good(2, provider.OpSend)
		b.good(1, provider.OpRecv)
	})
}
