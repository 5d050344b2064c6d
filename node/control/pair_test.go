package control

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"daisy/node/identity"
)

// Lines go both ways, and both ends know whose they are.
func TestPairLines(t *testing.T) {
	own := newIdentity(t)
	d, id := dialer(t)
	s := serve(t, own, ServerConfig{
		Admit: func(identity.ID) error { return errors.New("a stranger") },
		Pair: func(_ context.Context, l *Lines) {
			assert.Equal(t, id, identity.IDOf(l.PeerKey()))
			line, err := l.Receive()
			assert.NoError(t, err)
			assert.NoError(t, l.Send(append([]byte("not "), strings.TrimSpace(string(line))...)))
		},
	})
	d.addrs = func(identity.ID) []netip.AddrPort { return []netip.AddrPort{s.Addr()} }
	l, err := d.Pair(timeout(t), own.ID())
	require.NoError(t, err)
	defer l.Abort()
	assert.Equal(t, own.ID(), identity.IDOf(l.PeerKey()))
	require.NoError(t, l.Send([]byte("so")))
	line, err := l.Receive()
	require.NoError(t, err)
	assert.Equal(t, "not so\n", string(line))
	_, err = l.Receive()
	require.ErrorIs(t, err, io.EOF)
	require.ErrorContains(t, l.Send(make([]byte, maxMessage)), "too long")

	// But nothing else is taken from a stranger.
	_, err = d.Group(timeout(t), own.ID())
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, http.StatusForbidden, refused.Status)
	assert.Equal(t, "a stranger", refused.Reason)
}

func TestWho(t *testing.T) {
	own := newIdentity(t)
	s := serve(t, own, ServerConfig{})
	d, _ := dialer(t)
	id, err := d.Who(timeout(t), s.Addr())
	require.NoError(t, err)
	assert.Equal(t, own.ID(), id)
	s.Close()
	_, err = d.Who(timeout(t), s.Addr())
	require.Error(t, err)
}

// The leader's word holds for these members, in this epoch, and nobody else's
// does.
func TestRoster(t *testing.T) {
	leader, other := newIdentity(t), newIdentity(t)
	members := []Member{{ID: leader.ID(), Name: "a"}, {ID: newIdentity(t).ID(), Name: "b"}, {ID: newIdentity(t).ID(), Name: "c"}}
	signed := Invite{Epoch: 7, Members: members}
	require.NoError(t, signed.Sign(leader))
	require.NoError(t, signed.Verify(leader.PublicKey()))
	for name, c := range map[string]struct {
		edit func(*Invite)
		want string
	}{
		"another epoch":   {func(i *Invite) { i.Epoch++ }, "wrong"},
		"one more":        {func(i *Invite) { i.Members = append(i.Members[:3:3], Member{ID: other.ID()}) }, "wrong"},
		"one less":        {func(i *Invite) { i.Members = i.Members[:2] }, "wrong"},
		"another order":   {func(i *Invite) { i.Members = []Member{members[0], members[2], members[1]} }, "wrong"},
		"another member":  {func(i *Invite) { i.Members = []Member{members[0], members[1], {ID: other.ID()}} }, "wrong"},
		"another leader":  {func(i *Invite) { i.Members = []Member{{ID: other.ID()}, members[1], members[2]} }, "another leader's"},
		"no signature":    {func(i *Invite) { i.Signature = nil }, "did not sign"},
		"a short one":     {func(i *Invite) { i.Signature = i.Signature[:63] }, "wrong"},
		"somebody else's": {func(i *Invite) { require.NoError(t, i.Sign(other)) }, "wrong"},
		"for another purpose": {func(i *Invite) {
			var err error
			i.Signature, err = leader.Sign("something else", roster(i.Epoch, i.Members))
			require.NoError(t, err)
		}, "wrong"},
	} {
		i := signed
		c.edit(&i)
		assert.ErrorContains(t, i.Verify(leader.PublicKey()), c.want, name)
	}
	assert.ErrorContains(t, signed.Verify(other.PublicKey()), "another leader's")
	assert.ErrorContains(t, signed.Verify(nil), "another leader's")
}
