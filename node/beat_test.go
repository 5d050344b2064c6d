package node

import (
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"daisy/inference"
	"daisy/rdma/heartbeat"
)

// TestMemberFrozen: a process that answers nothing any more, while its kernel
// still does, is noticed by its heartbeat; when it goes on it learns that it was
// dropped.
func TestMemberFrozen(t *testing.T) {
	path := writeModel(t, 1)
	leader, third := startNode(t, "leader", yes, path), startNode(t, "third", yes, path)
	victim := startProcess(t, path, "")
	until(t, leader, "the victim is found", func() bool { return find(leader, victim.name).State == PeerReady })
	id := find(leader, victim.name).ID
	cluster, err := leader.Join(t.Context(), append(meet(t, leader, third), id), modelOf(t, leader), fast)
	require.NoError(t, err)
	until(t, third, "the cluster is published", func() bool { return third.Cluster() != nil })
	theirs := third.Cluster()
	victim.waitIn(t)

	var frozen time.Time
	var once sync.Once
	stats, err := cluster.Chat(t.Context(), request(200), func(inference.Delta) {
		once.Do(func() {
			frozen = time.Now()
			assert.NoError(t, victim.Process.Signal(syscall.SIGSTOP))
		})
	})
	t.Logf("the answer ended after %v: %v", time.Since(frozen), err)
	require.ErrorIs(t, err, ErrLost)
	var about *NodeError
	require.ErrorAs(t, err, &about)
	assert.Equal(t, id, about.ID)
	assert.Positive(t, stats.GeneratedTokens)

	closed(t, "the leader's part has ended", cluster.Done())
	t.Logf("the leader was free after %v", time.Since(frozen))
	closed(t, "the third's part has ended", theirs.Done())
	for _, c := range []*Cluster{cluster, theirs} {
		require.ErrorIs(t, c.Err(), ErrLost)
		assert.ErrorContains(t, c.Err(), victim.name+" was lost")
		assert.ErrorContains(t, c.Err(), "no heartbeat for")
	}

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
	victim := startProcess(t, path, "")
	until(t, leader, "the victim is found", func() bool { return find(leader, victim.name).State == PeerReady })
	begun := time.Now()
	cluster, err := leader.Join(t.Context(), []ID{find(leader, victim.name).ID}, modelOf(t, leader), fast)
	if err == nil { // it had just finished
		closed(t, "the leader's part has ended", cluster.Done())
		err = cluster.Err()
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
	victim := startProcess(t, path, member.Self().ID)
	victim.waitIn(t)
	until(t, member, "the cluster is published", func() bool { return member.Cluster() != nil })
	c := member.Cluster()
	frozen := time.Now()
	require.NoError(t, victim.Process.Signal(syscall.SIGSTOP))
	closed(t, "the member is free", c.Done())
	t.Logf("the member was free after %v", time.Since(frozen))
	require.ErrorIs(t, c.Err(), ErrLost)
	assert.ErrorContains(t, c.Err(), victim.name+" was lost: no heartbeat for")
	require.NoError(t, victim.Process.Signal(syscall.SIGCONT))
	require.True(t, victim.lines.Scan())
	// It hears from the member why, or only that the member has hung up.
	assert.Regexp(t, "^out: .* was lost: ", victim.lines.Text())
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
	victim := startProcess(t, path, "")
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

	frozen := time.Now()
	require.NoError(t, victim.Process.Signal(syscall.SIGSTOP))
	closed(t, "the leader's part has ended", cluster.Done())
	t.Logf("the leader was free after %v", time.Since(frozen))
	require.ErrorIs(t, cluster.Err(), ErrLost)
	assert.ErrorContains(t, cluster.Err(), victim.name+" was lost")
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
