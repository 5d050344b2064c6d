//go:build !headless

package ui

import (
	"math/rand/v2"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"
	"github.com/stretchr/testify/require"

	"daisy/app/history"
)

// Text that grows in any pieces ends in the same blocks as text shown at once,
// loses nothing but the empty lines between blocks, and leaves settled blocks
// alone.
func TestTextBlocks(t *testing.T) {
	test.NewTempApp(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var s strings.Builder
		for s.Len() < 6000 {
			s.WriteString(strings.Repeat("wörd ", 1+random.IntN(200)))
			s.WriteString([]string{"\n", "\n\n", "\n\n\n", " "}[random.IntN(4)])
		}
		whole := s.String()
		grown := newTextBlocks(widget.MediumImportance)
		for n := 0; n < len(whole); {
			n = min(len(whole), n+1+random.IntN(700))
			settled := append([]string(nil), texts(grown)...)
			grown.show(whole[:n])
			if len(settled) > 1 {
				require.Equal(t, settled[:len(settled)-1], texts(grown)[:len(settled)-1])
			}
		}
		require.Equal(t, squeeze(whole), squeeze(strings.Join(texts(grown), "\n\n")))
		require.Greater(t, len(texts(grown)), 1)

		grown.show("something else")
		require.Equal(t, []string{"something else"}, texts(grown))
	}
}

func texts(b *textBlocks) []string {
	var list []string
	for _, o := range b.box.Objects {
		list = append(list, o.(*widget.Label).Text)
	}
	return list
}

// squeeze leaves out what blocks may: empty lines.
func squeeze(s string) string {
	for strings.Contains(s, "\n\n") {
		s = strings.ReplaceAll(s, "\n\n", "\n")
	}
	return strings.Trim(s, "\n")
}

// One update of a long answer: at 30 of them in a second it must stay far below
// 33 ms.
func BenchmarkUpdateOf40KBAnswer(b *testing.B) {
	test.NewTempApp(b)
	th := newThread(func(string) {})
	w := test.NewTempWindow(b, th.scroll)
	w.Resize(fyne.NewSize(900, 600))
	m := history.Message{ID: 1, Role: history.RoleAssistant, Status: history.StatusStreaming}
	m.Content = strings.Repeat("A sentence that is long enough to be wrapped somewhere in the middle of the column.\n\n", 480)
	th.put(m)
	th.settle()
	for b.Loop() {
		m.Content += "word "
		th.put(m)
		th.settle()
	}
}
