package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"daisy/app/history"

	"github.com/stretchr/testify/require"
)

// Two node processes find each other, split a real model, answer, keep the
// answer; and say what one node says.
func TestDemo(t *testing.T) {
	model := realModel(t)
	ask := func(nodes int) togetherAnswer {
		return result[togetherAnswer](t, daisy(t, "demo", "--nodes", fmt.Sprint(nodes), "--json", "--model", model,
			"--demo-dir", t.TempDir(), "--prompt", "What is the capital of France?"))
	}
	one, two := ask(1), ask(2)
	require.Contains(t, two.Answer, "Paris")
	require.Equal(t, one.Answer, two.Answer)
	require.Positive(t, two.Prefill)
	require.Positive(t, two.Decode)
	require.Len(t, two.Nodes, 2)
	for rank, n := range two.Nodes {
		require.Equal(t, rank, n.Rank)
		require.InEpsilon(t, one.Nodes[0].WeightBytes/2, n.WeightBytes, 0.1, "three KV groups do not halve")
	}
	require.NotEqual(t, two.Nodes[0].ID, two.Nodes[1].ID)
	require.NotEqual(t, two.Nodes[0].PID, two.Nodes[1].PID)
	kept := messageAt(t, two.History)
	require.Equal(t, two.Answer, kept.Content)
	require.Equal(t, history.StatusDone, kept.Status)
}

// On three nodes a tiny model gives what it gives on one.
func TestDemoOfThree(t *testing.T) {
	model := tinyModel(t)
	ask := func(nodes int) togetherAnswer {
		return result[togetherAnswer](t, daisy(t, "demo", "--nodes", fmt.Sprint(nodes), "--json", "--model", model,
			"--demo-dir", t.TempDir(), "--max-tokens", "30"))
	}
	require.Equal(t, ask(1).Answer, ask(3).Answer)
}

// A node process killed in mid-answer ends the demo with a clear error soon, and
// the text so far stays in the history. Killing the leader does so too.
func TestDemoKilledInMidAnswer(t *testing.T) {
	for _, victim := range []string{"demo-1", "demo-0"} {
		t.Run(victim, func(t *testing.T) {
			dir := t.TempDir()
			cmd := daisy(t, "demo", "--nodes", "2", "--model", slowModel(t), "--demo-dir", dir, "--prompt", "Tell me a story")
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			stderr, err := cmd.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			said := make(chan string)
			pid := make(chan int, 1)
			go func() { // ends with the process
				var b strings.Builder
				for s := bufio.NewScanner(stderr); s.Scan(); {
					var p int
					if n, _ := fmt.Sscanf(s.Text(), victim+" is process %d", &p); n == 1 {
						pid <- p
					}
					fmt.Fprintln(&b, s.Text())
				}
				said <- b.String()
			}()
			// The prompt, and then enough of the answer to be in the middle of it.
			_, err = io.ReadFull(stdout, make([]byte, 200))
			require.NoError(t, err)
			killed := time.Now()
			require.NoError(t, syscall.Kill(<-pid, syscall.SIGKILL))
			_, _ = io.Copy(io.Discard, stdout)
			words := <-said
			require.Error(t, cmd.Wait())
			require.Less(t, time.Since(killed), 5*time.Second)
			require.Equal(t, 1, cmd.ProcessState.ExitCode())
			lines := strings.Split(strings.TrimSpace(words), "\n")
			last := lines[len(lines)-1]
			require.True(t, strings.HasPrefix(last, "daisy: "), words)
			require.Contains(t, last, victim, "the error names the node")
			require.NotContains(t, last, "holds", "a status line is no reason")

			kept := lastMessage(t, filepath.Join(dir, "demo-0"))
			require.NotEqual(t, history.StatusDone, kept.Status)
			require.NotEmpty(t, kept.Content)
		})
	}
}

// slowModel generates long enough to be killed meanwhile.
func slowModel(t *testing.T) string {
	t.Helper()
	if path, err := filepath.Abs("../models/SmolLM2-135M-Instruct.Q4_1.gguf"); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return tinyModel(t)
}

func messageAt(t *testing.T, place historyPlace) history.Message {
	t.Helper()
	store, err := history.Open(context.Background(), place.Path)
	require.NoError(t, err)
	defer store.Close()
	m, err := store.Message(context.Background(), place.Row)
	require.NoError(t, err)
	return m
}

func lastMessage(t *testing.T, dir string) history.Message {
	t.Helper()
	store, err := history.Open(context.Background(), historyPath(dir))
	require.NoError(t, err)
	defer store.Close()
	conversations, err := store.Conversations(context.Background())
	require.NoError(t, err)
	require.Len(t, conversations, 1)
	messages, err := store.Messages(context.Background(), conversations[0].ID)
	require.NoError(t, err)
	return messages[len(messages)-1]
}
