package node

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"daisy/rdma/heartbeat"
)

// TestMemberFrozen: a process that answers nothing any more, while its kernel
// still does, is noticed by its heartbeat; when it goes on it learns that it was
// dropped.
func TestMemberFrozen(t *testing.T) {
	path := writeSteadyModel(t)
	leader, third := startNode(t, "leader", yes, path), startNode(t, "third", yes, path)
	want := undisturbed(t, leader, 200)
	victim := startProcess(t, path, leader, "")
	until(t, leader, "the victim is found", func() bool { return find(leader, victim.name).State == PeerReady })
	id := find(leader, victim.name).ID
	cluster, err := leader.Join(t.Context(), append(meet(t, leader, third), id), modelOf(t, leader), fast)
	require.NoError(t, err)
	until(t, third, "the cluster is published", func() bool { return third.Cluster() != nil })
	theirs := third.Cluster()
	victim.waitIn(t)

	story := follow(t, leader)
	answer := read(t, cluster, 200, 20, func() { assert.NoError(t, victim.Process.Signal(syscall.SIGSTOP)) })
	require.NoError(t, answer.err)
	t.Logf("frozen; the pause was %v, of which %v prefilled %d tokens", answer.pause, answer.stats.Resumed.Prefill, answer.stats.Resumed.Tokens)
	require.Equal(t, want, answer.text)
	cause := story.paused(t).Cause
	require.ErrorIs(t, cause, ErrLost)
	var about *NodeError
	require.ErrorAs(t, cause, &about)
	assert.Equal(t, id, about.ID)

	closed(t, "the third's part has ended", theirs.Done())
	for _, err := range []error{cause, theirs.Err()} {
		require.ErrorIs(t, err, ErrLost)
		assert.ErrorContains(t, err, victim.name+" was lost")
		assert.ErrorContains(t, err, "no heartbeat for")
	}
	require.Equal(t, 2, story.continued(t).Nodes)

	require.NoError(t, victim.Process.Signal(syscall.SIGCONT))
	require.True(t, victim.lines.Scan())
	assert.Contains(t, victim.lines.Text(), "out: "+victim.name+" was lost: no heartbeat for", "it learns what it is about")
}

// TestFrozenWhileLoading: a member that stops while the model is loaded keeps
// nobody waiting.
func TestFrozenWhileLoading(t *testing.T) {
	t.Setenv(processStop, "1")
	path := writeModel(t, 1)
	leader := startNode(t, "leader", yes, path)
	victim := startProcess(t, path, leader, "")
	until(t, leader, "the victim is found", func() bool { return find(leader, victim.name).State == PeerReady })
	begun := time.Now()
	story := follow(t, leader)
	cluster, err := leader.Join(t.Context(), []ID{find(leader, victim.name).ID}, modelOf(t, leader), fast)
	if err == nil { // it had just finished
		err = story.paused(t).Cause
		require.NoError(t, cluster.Close())
	}
	// If it stopped before its first beat, the control stream's pings tell.
	t.Logf("after %v: %v", time.Since(begun), err)
	require.ErrorIs(t, err, ErrLost)
	assert.ErrorContains(t, err, victim.name+" was lost")
	assert.True(t, free(leader))
}

func TestLeaderFrozen(t *testing.T) {
	path := writeModel(t, 1)
	member := startNode(t, "member", yes, path)
	victim := startProcess(t, path, member, member.Self().ID)
	victim.waitIn(t)
	until(t, member, "the cluster is published", func() bool { return member.Cluster() != nil })
	c := member.Cluster()
	require.Eventually(t, func() bool { // one that freezes before is noticed by the pings
		l := c.Liveness()
		return len(l) == 1 && l[0].Heard
	}, patience, 5*time.Millisecond, "the leader's heartbeat is heard")
	frozen := time.Now()
	require.NoError(t, victim.Process.Signal(syscall.SIGSTOP))
	closed(t, "the member is free", c.Done())
	t.Logf("the member was free after %v", time.Since(frozen))
	require.ErrorIs(t, c.Err(), ErrLost)
	assert.ErrorContains(t, c.Err(), victim.name+" was lost: no heartbeat for")
	require.NoError(t, victim.Process.Signal(syscall.SIGCONT))
	require.True(t, victim.lines.Scan())
	// It hears from the member why, or only that the member has hung up, and goes on.
	assert.Regexp(t, "^on: 1 .* was lost: ", victim.lines.Text())
}

// TestUDPBlocked: where no datagram arrives, the cluster works, and a frozen
// member is noticed by the control stream's pings.
func TestUDPBlocked(t *testing.T) {
	path := writeModel(t, 1)
	leader := startNode(t, "leader", yes, path)
	nobody, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer nobody.Close()
	blocked := nobody.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	leader.beatPort = func(uint16) uint16 { return blocked }
	victim := startProcess(t, path, leader, "")
	until(t, leader, "the victim is found", func() bool { return find(leader, victim.name).State == PeerReady })
	cluster, err := leader.Join(t.Context(), []ID{find(leader, victim.name).ID}, modelOf(t, leader), fast)
	require.NoError(t, err)
	victim.waitIn(t)
	ask(t, cluster, 8)
	require.NoError(t, nobody.SetReadDeadline(time.Now().Add(patience)))
	_, _, err = nobody.ReadFrom(make([]byte, 100))
	require.NoError(t, err, "the member beats")
	liveness := cluster.Liveness()
	require.Len(t, liveness, 1)
	assert.False(t, liveness[0].Heard)
	assert.Positive(t, liveness[0].Sent)

	story := follow(t, leader)
	frozen := time.Now()
	require.NoError(t, victim.Process.Signal(syscall.SIGSTOP))
	cause := story.paused(t).Cause
	t.Logf("noticed after %v", time.Since(frozen))
	require.ErrorIs(t, cause, ErrLost)
	assert.ErrorContains(t, cause, victim.name+" was lost")
	require.Equal(t, 1, story.continued(t).Nodes)
	t.Logf("went on alone after %v", time.Since(frozen))
	ask(t, cluster, 8)
}

// TestLivenessOfACluster: ranks hear each other, and those whose version has no
// heartbeat, or whose machine allows none, take part all the same.
func TestLivenessOfACluster(t *testing.T) {
	path := writeModel(t, 1)
	a, b, c := startNode(t, "a", yes, path), startNode(t, "b", yes, path), startNode(t, "c", yes, path)
	c.beatPort = func(uint16) uint16 { return 0 }
	cluster, err := a.Join(t.Context(), meet(t, a, b, c), modelOf(t, a), fast)
	require.NoError(t, err)
	until(t, b, "the cluster is published", func() bool { return b.Cluster() != nil })
	theirs := b.Cluster()
	ranks := map[*Cluster]int{cluster: 1, theirs: 0}
	for side, rank := range ranks {
		var s heartbeat.Stats
		require.Eventually(t, func() bool {
			all := side.Liveness()
			require.Len(t, all, 1, "c has no heartbeat")
			s = all[0]
			return s.RTT > 0
		}, patience, 10*time.Millisecond, "beats are answered")
		assert.Equal(t, rank, s.Rank)
		assert.True(t, s.Heard)
		assert.False(t, s.Lost)
		assert.LessOrEqual(t, s.Bound, 5*time.Second)
	}
	ask(t, cluster, 8)
	require.NoError(t, cluster.Close())
	closed(t, "the member's part has ended", theirs.Done())
	assert.ErrorIs(t, theirs.Err(), ErrEnded)
}

// TestBeatPortsOfNobody: a list of heartbeats that does not fit is not believed.
func TestBeatPortsOfNobody(t *testing.T) {
	a := &assembly{members: nil, rank: 0}
	peers, err := a.beatPeers(make([]net.Conn, 3), []uint16{1, 2, 3, 4, 5})
	require.NoError(t, err)
	require.Empty(t, peers)
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	peers, err = a.beatPeers([]net.Conn{nil, client}, nil)
	require.NoError(t, err)
	require.Empty(t, peers)
	_, err = a.beatPeers([]net.Conn{nil, client}, []uint16{0, 7})
	require.ErrorContains(t, err, "without keys")
}
