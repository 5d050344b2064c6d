package pairing

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOneAtATime(t *testing.T) {
	var g Gate
	leave, err := g.Enter(true)
	require.NoError(t, err)
	for _, incoming := range []bool{true, false} {
		_, err = g.Enter(incoming)
		require.ErrorIs(t, err, ErrBusy)
	}
	leave(Nothing)
	leave, err = g.Enter(false)
	require.NoError(t, err)
	leave(Nothing)
}

func TestBackOffAndLockOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		fail := func(want time.Duration) {
			t.Helper()
			leave, err := g.Enter(true)
			require.NoError(t, err)
			leave(Failed)
			var locked *LockedError
			_, err = g.Enter(true)
			require.ErrorAs(t, err, &locked)
			assert.Equal(t, want, time.Until(locked.Until))
			time.Sleep(want - time.Nanosecond)
			_, err = g.Enter(true)
			require.ErrorAs(t, err, &locked, "not a moment earlier")
			time.Sleep(time.Nanosecond)
		}
		for _, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second} {
			fail(want)
		}
		fail(lockTime)
		fail(lockTime) // one more guess, not five
		fail(lockTime)

		// A stranger's failures do not keep the person here from beginning.
		leave, err := g.Enter(true)
		require.NoError(t, err)
		leave(Failed)
		leave, err = g.Enter(false)
		require.NoError(t, err)
		leave(Paired)
		_, err = g.Enter(true)
		require.Error(t, err, "and success in the other direction forgives nothing")

		time.Sleep(forgetAfter + time.Nanosecond)
		fail(2 * time.Second)
		leave, err = g.Enter(true)
		require.NoError(t, err)
		leave(Paired)
		fail(2 * time.Second) // success forgives
	})
}

// What ends before anybody could learn the digits does not count.
func TestNothingHappened(t *testing.T) {
	var g Gate
	for range 2 * lockAfter {
		leave, err := g.Enter(true)
		require.NoError(t, err)
		leave(Nothing)
	}
}
