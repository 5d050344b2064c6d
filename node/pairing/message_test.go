package pairing

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var sound = []message{
	{Offer: &offer{Name: "Küche", Commitment: hash{1, 0xab}}},
	{Reveal: &reveal{Nonce: hash{2}}},
	{Confirm: &confirm{}},
	{End: &end{endRefused}}, {End: &end{endExpired}}, {End: &end{endMismatch}}, {End: &end{endBusy}}, {End: &end{endLocked}}, {End: &end{endClosed}},
}

func TestMessages(t *testing.T) {
	for _, m := range sound {
		line, err := m.encode()
		require.NoError(t, err)
		got, err := decode(line)
		require.NoError(t, err)
		m.Version = version
		assert.Equal(t, m, got)
	}
	zeros := strings.Repeat("0", 64)
	for text, want := range map[string]string{
		``:                     "no message",
		`{"v":2,"confirm":{}}`: "another way",
		`{"confirm":{}}`:       "another way",
		`{"v":1}`:              "0 contents",
		`{"v":1,"confirm":{},"end":{"kind":"busy"}}`:                                                                 "2 contents",
		`{"v":1,"end":{"kind":"tired"}}`:                                                                             `"tired"`,
		`{"v":1,"reveal":{"nonce":"` + zeros + `"}}`:                                                                 "without its 32 bytes",
		`{"v":1,"reveal":{}}`:                                                                                        "without its 32 bytes",
		`{"v":1,"reveal":{"nonce":"` + strings.Repeat("AB", 32) + `"}}`:                                              "lower-case",
		`{"v":1,"reveal":{"nonce":"ab"}}`:                                                                            "32 bytes",
		`{"v":1,"offer":{"name":"a","commitment":"` + zeros + `"}}`:                                                  "without its 32 bytes",
		`{"v":1,"offer":{"name":"","commitment":"` + strings.Repeat("ab", 32) + `"}}`:                                "not fit",
		`{"v":1,"offer":{"name":"a\u202eb","commitment":"` + strings.Repeat("ab", 32) + `"}}`:                        "not fit",
		`{"v":1,"offer":{"name":"` + strings.Repeat("a", 64) + `","commitment":"` + strings.Repeat("ab", 32) + `"}}`: "not fit",
		strings.Repeat(" ", maxLine+1):                                                                               "more than",
	} {
		_, err := decode([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
}

func TestTurn(t *testing.T) {
	for want, reason := range map[error]error{ErrPeerBusy: ErrBusy, ErrPeerLocked: &LockedError{}, ErrClosed: ErrClosed} {
		c, d := net.Pipe()
		said := make(chan error, 1)
		go func() {
			_, err := receive(over(d))
			said <- err
		}()
		Turn(over(c), reason)
		require.ErrorIs(t, <-said, want)
		c.Close()
		d.Close()
	}
}

// FuzzMessage: a line is an error or sound, and stays what it is.
func FuzzMessage(f *testing.F) {
	for _, m := range sound {
		line, err := m.encode()
		require.NoError(f, err)
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err != nil {
			return
		}
		line, err := m.encode()
		require.NoError(t, err)
		again, err := decode(line)
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}

// FuzzPeer: whatever a peer says in the place of its messages, there is no trust
// without a confirmation here, and no panic.
func FuzzPeer(f *testing.F) {
	var script []string
	for _, m := range sound[:4] {
		line, err := m.encode()
		require.NoError(f, err)
		script = append(script, string(line))
	}
	f.Add([]byte(strings.Join(script, "\n")), true)
	f.Add([]byte(strings.Join(script, "\n")), false)
	f.Add([]byte("{}\n\n{"), true)
	keyA, keyB := newKey(f), newKey(f)
	f.Fuzz(func(t *testing.T, data []byte, incoming bool) {
		ch := &recorded{lines: strings.SplitAfter(string(data), "\n")}
		a, _, err := Agree(t.Context(), ch, Side{Key: keyA, Name: "Study", PeerKey: keyB, Incoming: incoming})
		require.Error(t, err, "a commitment to an unknown nonce was met by chance")
		require.Nil(t, a)
	})
}

// recorded is a Channel on which the peer's lines are there from the beginning.
type recorded struct{ lines []string }

func (r *recorded) Send([]byte) error { return nil }
func (r *recorded) Abort()            {}
func (r *recorded) Receive() ([]byte, error) {
	if len(r.lines) == 0 {
		return nil, net.ErrClosed
	}
	line := r.lines[0]
	r.lines = r.lines[1:]
	return []byte(line), nil
}

// A side that hung up at once, as a busy one does, is still heard.
func TestLastWord(t *testing.T) {
	line, err := message{End: &end{endBusy}}.encode()
	require.NoError(t, err)
	ch := &hungUp{recorded{lines: []string{string(line)}}}
	_, shown, err := Agree(t.Context(), ch, Side{Key: newKey(t), Name: "Study", PeerKey: newKey(t)})
	require.ErrorIs(t, err, ErrPeerBusy)
	require.False(t, shown)
	_, _, err = Agree(t.Context(), &hungUp{}, Side{Key: newKey(t), Name: "Study", PeerKey: newKey(t)})
	require.ErrorIs(t, err, ErrBroken)
}

// hungUp takes nothing any more.
type hungUp struct{ recorded }

func (h *hungUp) Send([]byte) error { return net.ErrClosed }
