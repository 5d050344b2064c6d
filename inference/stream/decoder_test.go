package stream

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// collect feeds the pieces and returns all that came out.
func collect(opt Options, pieces ...string) Delta {
	d := New(opt)
	var all Delta
	add := func(x Delta) {
		all.Text += x.Text
		all.Reasoning += x.Reasoning
		all.ToolCall += x.ToolCall
	}
	for _, p := range pieces {
		add(d.Write([]byte(p)))
	}
	add(d.Flush())
	return all
}

var cases = []struct {
	name string
	opt  Options
	in   string
	want Delta
}{
	{"plain", Options{}, "Hello, नमस्ते 👩‍👩‍👧!", Delta{Text: "Hello, नमस्ते 👩‍👩‍👧!"}},
	{"leading space stays", Options{}, " a ", Delta{Text: " a "}},
	{"leading space goes", Options{TrimStart: true}, " \n a ", Delta{Text: "a "}},
	{"invalid bytes", Options{}, "a\xffb\xc3", Delta{Text: "a\uFFFDb\uFFFD"}},
	{"overlong and surrogate", Options{}, "\xc0\x80\xed\xa0\x80", Delta{Text: strings.Repeat("\uFFFD", 5)}},
	{"cut character, then another", Options{}, "\xe0\xa4a\xf0\x9f", Delta{Text: "\uFFFD\uFFFDa\uFFFD"}},
	{"stop", Options{Stops: []string{"END"}}, "one EN two END three", Delta{Text: "one EN two "}},
	{"stop at once", Options{Stops: []string{"a"}}, "abc", Delta{}},
	{"stop never complete", Options{Stops: []string{"END"}}, "the EN", Delta{Text: "the EN"}},
	{"stop of repeated letters", Options{Stops: []string{"aab"}}, "aaaaab!", Delta{Text: "aaa"}},
	{"first complete stop", Options{Stops: []string{"bcd", "c"}}, "abcd", Delta{Text: "ab"}},
	{"longest of those complete", Options{Stops: []string{"c", "bc"}}, "abcd", Delta{Text: "a"}},
	{"stop in another script", Options{Stops: []string{"。"}}, "你好。再见", Delta{Text: "你好"}},
	{"empty stop", Options{Stops: []string{"", "\xff"}}, "a\xff", Delta{Text: "a\uFFFD"}},
	{"thinking", Options{}, "<think>\nHm, a < b.\n</think>\n\nYes.", Delta{Reasoning: "Hm, a < b.", Text: "Yes."}},
	{"thinking twice", Options{}, "<think>a</think>b <think>c</think> d", Delta{Reasoning: "ac", Text: "b  d"}},
	{"thinking never ends", Options{}, "<think>a </thin", Delta{Reasoning: "a </thin"}},
	{"the prompt opened it", Options{InReasoning: true}, "a\n\n b\n</think>\nc", Delta{Reasoning: "a\n\n b", Text: "c"}},
	{"opened twice", Options{InReasoning: true}, "<think>a</think>c", Delta{Reasoning: "a", Text: "c"}},
	{"left-over end", Options{}, "a</think>b", Delta{Text: "ab"}},
	{"nearly a tag", Options{}, "a <thin b <<think>c", Delta{Text: "a <thin b <", Reasoning: "c"}},
	{"stops do not count in reasoning", Options{Stops: []string{"\n\n"}}, "<think>a\n\nb</think>c\n\nd", Delta{Reasoning: "a\n\nb", Text: "c"}},
	{"no tags", Options{Tags: []Tag{}}, "<think>a</think>", Delta{Text: "<think>a</think>"}},
	{"other tags", Options{}, "[THINK]a[/THINK]b◁think▷c◁/think▷d", Delta{Reasoning: "ac", Text: "bd"}},
	{"tool call", Options{}, "Let me see.<tool_call>\n{\"name\":\"f\"}\n</tool_call>", Delta{Text: "Let me see.", ToolCall: `{"name":"f"}`}},
	{"tool call to the end", Options{}, `[TOOL_CALLS][{"name":"f"}]`, Delta{ToolCall: `[{"name":"f"}]`}},
	{"harmony", Options{Harmony: true}, "<|channel|>analysis<|message|>User asks.<|end|><|start|>assistant<|channel|>final<|message|>Paris.<|return|>",
		Delta{Reasoning: "User asks.", Text: "Paris."}},
	{"harmony tool", Options{Harmony: true}, "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\":1}<|call|>", Delta{ToolCall: `{"a":1}`}},
	{"harmony tool, recipient first", Options{Harmony: true}, " to=functions.f<|channel|>commentary json<|message|>{}<|call|>", Delta{ToolCall: `{}`}},
	{"harmony preamble", Options{Harmony: true}, "<|channel|>commentary<|message|>First.<|end|><|start|>assistant<|channel|>final<|message|>Then.<|return|>",
		Delta{Text: "First.\n\nThen."}},
	{"harmony without marks", Options{Harmony: true}, "Just text", Delta{Text: "Just text"}},
	{"harmony without marks, stop", Options{Harmony: true, Stops: []string{"t t"}}, "Just text", Delta{Text: "Jus"}},
	{"harmony cut in the header", Options{Harmony: true}, "<|channel|>anal", Delta{}},
	{"harmony stop", Options{Harmony: true, Stops: []string{"."}}, "<|channel|>analysis<|message|>A.<|end|><|start|>assistant<|channel|>final<|message|>B. C.",
		Delta{Reasoning: "A.", Text: "B"}},
}

func TestWholeAndCut(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, collect(c.opt, c.in))
			require.Equal(t, c.want, collect(c.opt, strings.Split(c.in, "")...), "by characters")
			bytes := make([]string, len(c.in))
			for i := range len(c.in) {
				bytes[i] = c.in[i : i+1]
			}
			require.Equal(t, c.want, collect(c.opt, bytes...), "by bytes")
			for i := range len(c.in) + 1 {
				for j := i; j <= min(len(c.in), i+16); j++ {
					require.Equal(t, c.want, collect(c.opt, c.in[:i], c.in[i:j], c.in[j:]), "cut at %d and %d", i, j)
				}
			}
		})
	}
}

// What is shown so far must always be a start of what is shown in the end, and valid UTF-8.
func TestNothingIsTakenBack(t *testing.T) {
	for _, c := range cases {
		d := New(c.opt)
		var text string
		for i := range len(c.in) {
			text += d.Write([]byte{c.in[i]}).Text
			require.True(t, strings.HasPrefix(c.want.Text, text), "%s: %q", c.name, text)
		}
	}
}

func TestTextIsHeldOnlyAsLongAsNeeded(t *testing.T) {
	d := New(Options{Stops: []string{"END"}})
	assert.Equal(t, "a ", d.Write([]byte("a EN")).Text)
	assert.Equal(t, "ENx", d.Write([]byte("x")).Text)
	assert.Equal(t, "", d.Write([]byte("\xe0\xa4")).Text)
	assert.Equal(t, "न", d.Write([]byte("\xa8")).Text)
	assert.False(t, d.Stopped())
	assert.True(t, d.Write([]byte("END more")).Empty())
	assert.True(t, d.Stopped())
	assert.True(t, d.Write([]byte("x")).Empty())
	assert.True(t, d.Control("<think>").Empty())
	assert.True(t, d.Flush().Empty())
}

func TestControlTokens(t *testing.T) {
	d := New(Options{})
	assert.Equal(t, Delta{Text: "a<th"}, Delta{Text: d.Write([]byte("a<th")).Text + d.Control("<|im_end|>").Text}, "a control token ends what was held")
	assert.True(t, d.Control("<think>").Empty())
	assert.Equal(t, "hm", d.Write([]byte("hm")).Reasoning)
	d.Control("</think>")
	assert.Equal(t, "yes", d.Write([]byte("yes")).Text)

	d = New(Options{}) // channels are understood without being told, when they come as control tokens
	d.Control("<|channel|>")
	assert.True(t, d.Write([]byte("analysis")).Empty())
	d.Control("<|message|>")
	assert.Equal(t, "hm", d.Write([]byte("hm")).Reasoning)
	d.Control("<|end|>")
	d.Control("<|start|>")
	d.Write([]byte("assistant"))
	d.Control("<|channel|>")
	d.Write([]byte("final"))
	d.Control("<|message|>")
	assert.Equal(t, "yes", d.Write([]byte("yes")).Text)
	d.Control("<|return|>")
	assert.True(t, d.Flush().Empty())

	d = New(Options{})
	d.Write([]byte("\xe0\xa4"))
	assert.Equal(t, "\uFFFD", d.Control("<|eot_id|>").Text, "half a character cannot go on after a control token")
}

// Random texts over an alphabet that makes marks and near-marks likely must come out the same however they are cut.
func TestRandomTextsRandomCuts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{"<think>", "</think>", "<th", "ink>", "</", "STOP", "STO", "P", " ", "\n", "न", "\xe0", "\xa4", "a", "<", "👩‍👧",
		"<|channel|>", "final", "analysis", "<|message|>", "<|end|>", "<|", "<tool_call>", "</tool_call>", "to="}
	for range 1000 {
		opt := Options{Stops: []string{"STOP", "PP"}, Harmony: rng.IntN(3) == 0, InReasoning: rng.IntN(3) == 0, TrimStart: rng.IntN(2) == 0}
		var in string
		for range rng.IntN(20) {
			in += words[rng.IntN(len(words))]
		}
		want := collect(opt, in)
		if !strings.Contains(in, "</think>") && !strings.Contains(in, "</tool_call>") { // a tag that goes may join two halves
			require.NotContains(t, want.Text, "STOP")
			if !opt.Harmony { // which has no such tag
				require.NotContains(t, want.Text, "<think>")
			}
		}
		for range 5 {
			var pieces []string
			for rest := in; rest != ""; {
				n := 1 + rng.IntN(len(rest))
				pieces = append(pieces, rest[:n])
				rest = rest[n:]
			}
			require.Equal(t, want, collect(opt, pieces...), "%q cut as %q", in, pieces)
		}
	}
}

// A pattern that nearly matches everywhere must not make the time grow with its length.
func TestLinearTime(t *testing.T) {
	const n = 1 << 20
	long := strings.Repeat("a", 20_000) + "b"
	d := New(Options{Stops: []string{long}})
	start := time.Now()
	shown := 0
	for range n {
		shown += len(d.Write([]byte("a")).Text)
	}
	shown += len(d.Flush().Text)
	assert.Equal(t, n, shown)
	assert.Less(t, time.Since(start), 20*time.Second)
}

func TestOptionsFromTheModel(t *testing.T) {
	assert.True(t, OpensReasoning("<|assistant|><think>\n", nil))
	assert.False(t, OpensReasoning("<think>a</think>\n", nil))
	assert.False(t, OpensReasoning("<think>", []Tag{}))
	assert.False(t, OpensReasoning("<tool_call>", nil))
	assert.True(t, SpeaksHarmony("… '<|start|>assistant<|channel|>final<|message|>' …"))
	assert.False(t, SpeaksHarmony("<|im_start|>"))
}

func FuzzDecoder(f *testing.F) {
	for _, c := range cases {
		f.Add(c.in, uint8(1), c.opt.Harmony, c.opt.InReasoning)
	}
	f.Fuzz(func(t *testing.T, in string, step uint8, harmony, inside bool) {
		opt := Options{Stops: []string{"END", "\n\n\n"}, Harmony: harmony, InReasoning: inside}
		var pieces []string
		for rest, n := in, int(step)+1; rest != ""; {
			n = min(n, len(rest))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		whole := collect(opt, in)
		require.Equal(t, whole, collect(opt, pieces...))
		require.Equal(t, whole.Text, strings.ToValidUTF8(whole.Text, ""))
	})
}
