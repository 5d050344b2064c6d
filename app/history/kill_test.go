package history

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const childEnv = "DAISY_HISTORY_CHILD" // path of the file that a child writes

// child writes an answer of numbered words until it is killed, and says each
// number once it was appended.
func child(path string) {
	must := func(err error) {
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	ctx := context.Background()
	s, err := Open(ctx, path)
	must(err)
	c, err := s.CreateConversation(ctx, "killed")
	must(err)
	a, err := s.BeginAnswer(ctx, c.ID, 0, "model")
	must(err)
	fmt.Println(a.Message().ID)
	tick := time.NewTicker(5 * time.Millisecond)
	for i := 1; ; i++ {
		<-tick.C
		a.Append(fmt.Sprintf("%d ", i), "")
		fmt.Println(i)
	}
}

// A process killed in mid-answer loses at most its last second. While it
// lives, nobody else calls its answer interrupted.
func TestKilledInMidAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill()

	type said struct {
		n  int
		at time.Time
	}
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	id, err := strconv.ParseInt(lines.Text(), 10, 64)
	require.NoError(t, err, lines.Text())
	var all []said
	for len(all) < 400 && lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		require.NoError(t, err, lines.Text())
		all = append(all, said{n, time.Now()})
		if len(all) == 100 {
			s := open(t, path)
			waitFor(t, s, id, func(m Message) bool { return m.Content != "" })
			m, err := s.Message(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, StatusStreaming, m.Status, "its writer is alive")
			require.NoError(t, s.Close())
		}
	}
	require.Len(t, all, 400)
	killed := time.Now()
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	m, err := open(t, path).Message(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, StatusInterrupted, m.Status)
	words := strings.Fields(m.Content)
	for i, w := range words {
		require.Equal(t, strconv.Itoa(i+1), w)
	}
	atLeast := 0
	for _, s := range all {
		if s.at.Before(killed.Add(-time.Second)) {
			atLeast = s.n
		}
	}
	require.Positive(t, atLeast)
	require.GreaterOrEqual(t, len(words), atLeast)
}
