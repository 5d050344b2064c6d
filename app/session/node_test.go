package session

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"daisy/app/history"
	"daisy/inference/modeltest"
	"daisy/node"
	"daisy/node/models"
)

// The view model on a real node, a real library and a real tiny model.
func TestRealNode(t *testing.T) {
	dir := t.TempDir()
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.gguf")
	modeltest.Write(t, filepath.Join(dir, "tiny.gguf"), modeltest.Options{})
	modeltest.Write(t, elsewhere, modeltest.Options{Seed: 2})
	elsewhere = modeltest.Edit(t, elsewhere, nil, "tokenizer.chat_template")
	library := models.New(dir)
	n, err := node.Start(t.Context(), node.Config{
		Dir: filepath.Join(dir, "node"), Name: fmt.Sprintf("Session %d", os.Getpid()), Interfaces: []string{loopback(t)}, Models: library,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	s, conv := newSession(t, "")
	s.cfg.MaxTokens = 10
	c := &clusterTest{session: s, signal: make(chan struct{}, 1)}
	c.Cluster = NewCluster(FromNode(n, node.JoinOptions{Threads: 1}), FromLibrary(library, dir), s)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	c.Subscribe(func() {
		select {
		case c.signal <- struct{}{}:
		default:
		}
	})

	c.AddFile(elsewhere)
	state := c.until(t, func(s ClusterState) bool { return len(s.Models) == 2 })
	require.Equal(t, dir, state.Folder)
	require.Equal(t, elsewhere, state.Chosen)
	require.Equal(t, "llama", state.Models[0].Architecture)
	require.Equal(t, string(n.Self().ID), state.Self.ID)

	c.Join()
	state = c.until(t, phase(Joined))
	require.True(t, state.Leading)
	require.True(t, state.NoTemplate)
	require.Len(t, state.Members, 1)
	require.Positive(t, state.Members[0].WeightBytes)
	require.Eventually(t, func() bool { return s.Model() != "" }, 10*time.Second, time.Millisecond)
	m, err := s.Ask(t.Context(), conv, "hello", func(Update) {})
	require.NoError(t, err)
	require.Equal(t, history.StatusDone, m.Status)
	require.Positive(t, m.Stats.GeneratedTokens)
	require.Equal(t, state.Model, m.Model)

	c.Leave()
	state = c.until(t, phase(Alone))
	require.NoError(t, state.Err)
	require.Nil(t, n.Cluster())
	_, err = s.Ask(t.Context(), conv, "hello", func(Update) {})
	require.ErrorIs(t, err, ErrNoModel)

	// A file that is no model is said to be none.
	broken := filepath.Join(dir, "broken.gguf")
	require.NoError(t, os.WriteFile(broken, []byte("GGUF"), 0o600))
	c.AddFile(broken)
	state = c.until(t, func(s ClusterState) bool { return s.Err != nil })
	require.ErrorContains(t, state.Err, broken)
}

func loopback(t *testing.T) string {
	t.Helper()
	list, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range list {
		if i.Flags&net.FlagLoopback != 0 {
			return i.Name
		}
	}
	require.FailNow(t, "there is no loopback interface")
	return ""
}
