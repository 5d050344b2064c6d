package node

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"daisy/inference"
	"daisy/node/identity"
)

// processEnv makes the test binary one node instead: its value is the folder,
// processModel the model, and processLead the ID it is to lead.
const (
	processEnv   = "DAISY_TEST_NODE"
	processModel = "DAISY_TEST_MODEL"
	processLead  = "DAISY_TEST_LEAD"
	processName  = "DAISY_TEST_NAME"
	processStop  = "DAISY_TEST_STOP" // if set, it stops itself while it loads
	processTrust = "DAISY_TEST_TRUST"
)

// processMain is a whole node in a process of its own, to be killed. It prints
// "in" when it is in a cluster, "on:" when that goes on with fewer, "out:" and the
// cause when it ends, and ends when its input does.
func processMain() int {
	if err := processNode(); err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

func processNode() error {
	t := &testing.T{} // for testConfig, which cannot fail here otherwise
	config := testConfig(t, os.Getenv(processEnv), os.Getenv(processName), yes, os.Getenv(processModel))
	config.Trust = []ID{ID(os.Getenv(processTrust))}
	n, err := Start(context.Background(), config)
	if err != nil {
		return err
	}
	defer n.Close()
	changed := make(chan struct{}, 1)
	n.Subscribe(func(e Event) {
		if p, ok := e.(Progress); ok && p.Stage == StageLoading && os.Getenv(processStop) != "" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
		if on, ok := e.(Continued); ok {
			fmt.Println("on:", on.Nodes, on.Cause)
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if id := ID(os.Getenv(processLead)); id != "" {
		for state(n, id) != PeerReady {
			<-changed
		}
		list, err := n.config.Models.List()
		if err != nil {
			return err
		}
		if _, err := n.Join(context.Background(), []ID{id}, list[0], fast); err != nil {
			return err
		}
	}
	for n.Cluster() == nil {
		<-changed
	}
	c := n.Cluster()
	fmt.Println("in")
	go func() { // at the latest Node.Close ends it
		<-c.Done()
		fmt.Println("out:", c.Err())
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

var victims atomic.Int32

// process is a node in another process.
type process struct {
	*exec.Cmd
	id    ID
	name  string // like that of no other test's node
	lines *bufio.Scanner
}

// startProcess starts a node that friend and it trust; it leads friend if lead is
// friend's.
func startProcess(t *testing.T, model string, friend *Node, lead ID) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	name := fmt.Sprintf("victim %d of %d", victims.Add(1), os.Getpid())
	dir := t.TempDir()
	its, err := identity.Load(dir)
	require.NoError(t, err)
	require.NoError(t, friend.Trust(its.ID()))
	cmd.Env = append(os.Environ(), processEnv+"="+dir, processTrust+"="+string(friend.Self().ID), processModel+"="+model, processLead+"="+string(lead), processName+"="+name)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		stdin.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &process{cmd, its.ID(), name, bufio.NewScanner(stdout)}
}

func (p *process) waitIn(t *testing.T) {
	t.Helper()
	require.True(t, p.lines.Scan(), "the process ended")
	require.Equal(t, "in", p.lines.Text())
}

// TestMemberKilledInMidAnswer: the rest goes on, nobody is asked again, and readers
// see a pause: the one whose answer runs, and the one who waits for a turn.
func TestMemberKilledInMidAnswer(t *testing.T) {
	path := writeSteadyModel(t)
	var asked atomic.Int32
	counted := func(context.Context, Invitation) bool { asked.Add(1); return true }
	leader, third := startNode(t, "leader", yes, path), startNode(t, "third", counted, path)
	want := undisturbed(t, leader, 200)
	victim := startProcess(t, path, leader, "")
	until(t, leader, "the victim is found", func() bool { return find(leader, victim.name).State == PeerReady })
	id := find(leader, victim.name).ID
	cluster, err := leader.Join(t.Context(), append(meet(t, leader, third), id), modelOf(t, leader), fast)
	require.NoError(t, err)
	until(t, third, "the cluster is published", func() bool { return third.Cluster() != nil })
	theirs, epoch := third.Cluster(), cluster.Epoch()
	victim.waitIn(t)
	story := follow(t, leader)

	var second errgroup.Group
	waiting := ""
	answer := read(t, cluster, 200, 20, func() {
		second.Go(func() error { // waits for its turn
			var text strings.Builder
			_, err := cluster.Chat(t.Context(), drawn(40), func(d inference.Delta) { text.WriteString(d.Text) })
			waiting = text.String()
			return err
		})
		assert.NoError(t, victim.Process.Kill())
	})
	require.NoError(t, answer.err)
	t.Logf("killed; the pause was %v, of which %v prefilled %d tokens", answer.pause, answer.stats.Resumed.Prefill, answer.stats.Resumed.Tokens)
	require.Equal(t, want, answer.text)
	require.Equal(t, 200, answer.stats.GeneratedTokens)
	require.Equal(t, 1, answer.stats.Resumed.Times)
	require.NoError(t, second.Wait())
	require.True(t, strings.HasPrefix(want, strings.TrimSuffix(waiting, "\uFFFD")))
	require.Greater(t, len(waiting), 20)

	paused, continued := story.paused(t), story.continued(t)
	require.ErrorIs(t, paused.Cause, ErrLost)
	assert.ErrorContains(t, paused.Cause, victim.name+" was lost")
	assert.Equal(t, epoch, paused.Epoch)
	assert.Equal(t, 2, continued.Nodes)
	assert.Equal(t, cluster.Epoch(), continued.Epoch)
	assert.NotEqual(t, epoch, cluster.Epoch())
	require.Len(t, cluster.Members(), 2)
	assert.Same(t, cluster, leader.Cluster())

	closed(t, "the third's part in the first epoch has ended", theirs.Done())
	require.ErrorIs(t, theirs.Err(), ErrLost)
	assert.ErrorContains(t, theirs.Err(), victim.name+" was lost")
	until(t, third, "it is in the second", func() bool { return third.Cluster() != nil })
	assert.Equal(t, cluster.Epoch(), third.Cluster().Epoch())
	assert.EqualValues(t, 1, asked.Load(), "consent is kept")

	// And once more, alone.
	require.NoError(t, third.Close())
	require.Equal(t, 1, story.continued(t).Nodes)
	ask(t, cluster, 4)
	require.NoError(t, cluster.Close())
	require.NoError(t, cluster.Err())
}

func TestLeaderKilled(t *testing.T) {
	path := writeModel(t, 1)
	member := startNode(t, "member", yes, path)
	victim := startProcess(t, path, member, member.Self().ID)
	victim.waitIn(t)
	until(t, member, "the cluster is published", func() bool { return member.Cluster() != nil })
	c := member.Cluster()
	require.NoError(t, victim.Process.Kill())
	closed(t, "the member is free", c.Done())
	require.ErrorIs(t, c.Err(), ErrLost)
	assert.ErrorContains(t, c.Err(), victim.name+" was lost")
	assert.True(t, free(member))
	until(t, member, "the leader is unreachable", func() bool { return find(member, victim.name).State == PeerUnreachable })
	assert.NotEmpty(t, find(member, victim.name).Reason)
}

// TestMemberFrozenInMidAnswer: a machine that answers nothing any more, and hangs
// up on nobody, does not keep the leader from closing.
func TestMemberFrozenInMidAnswer(t *testing.T) {
	path := writeModel(t, 1)
	leader := startNode(t, "leader", yes, path)
	victim := startProcess(t, path, leader, "")
	until(t, leader, "the victim is found", func() bool { return find(leader, victim.name).State == PeerReady })
	cluster, err := leader.Join(t.Context(), []ID{find(leader, victim.name).ID}, modelOf(t, leader), fast)
	require.NoError(t, err)
	frozen := make(chan struct{})
	answered := make(chan error, 1)
	go func() { // awaited below
		var once sync.Once
		_, err := cluster.Chat(t.Context(), request(200), func(inference.Delta) {
			once.Do(func() {
				assert.NoError(t, victim.Process.Signal(syscall.SIGSTOP))
				close(frozen)
			})
		})
		answered <- err
	}()
	closed(t, "the victim is frozen", frozen)
	begun := time.Now()
	require.NoError(t, cluster.Close())
	assert.Less(t, time.Since(begun), patience/2)
	require.ErrorIs(t, <-answered, ErrClosed)
	assert.True(t, free(leader))
}

func find(n *Node, name string) Peer {
	for _, p := range n.Peers() {
		if p.Name == name {
			return p
		}
	}
	return Peer{}
}
