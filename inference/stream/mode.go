package stream

import "strings"

// mode is what the decoder is in the middle of: where text goes, and which marks end that.
type mode struct {
	kind    Kind
	marks   []mark
	machine *automaton
}

// mark is a string that means something in a mode.
type mark struct {
	text string
	then action
	tag  int // for open: which
}

type action uint8

const (
	stop   action = iota // the answer ends
	drop                 // a tag that has no place here
	open                 // a tag opens
	shut                 // the open tag closes
	head                 // a Harmony header starts, or goes on with the channel
	body                 // a Harmony header ends, its message follows
	finish               // a Harmony message ends
)

// Marks of the Harmony format.
const (
	markStart   = "<|start|>"
	markChannel = "<|channel|>"
	markMessage = "<|message|>"
	markEnd     = "<|end|>"
	markReturn  = "<|return|>"
	markCall    = "<|call|>"
)

var harmonyMarks = []mark{
	{markStart, head, 0}, {markChannel, head, 0}, {markMessage, body, 0},
	{markEnd, finish, 0}, {markReturn, finish, 0}, {markCall, finish, 0},
}

func newMode(kind Kind, marks []mark) *mode {
	texts := make([]string, len(marks))
	for i, m := range marks {
		texts[i] = m.text
	}
	return &mode{kind, marks, newAutomaton(texts)}
}

// modes holds one mode for each thing an answer can be in the middle of.
type modes struct {
	text, reasoning *mode
	tools           []*mode  // by tag; nil for tags of other kinds
	message         [3]*mode // of the Harmony format, by kind
	harmonyHeader   *mode
}

func buildModes(opt Options) *modes {
	tags := orDefault(opt.Tags)
	var text, reasoning []mark
	for _, s := range opt.Stops {
		text = append(text, mark{strings.ToValidUTF8(s, ""), stop, 0})
	}
	m := &modes{tools: make([]*mode, len(tags))}
	for i, t := range tags {
		text = append(text, mark{t.Open, open, i})
		switch t.Kind {
		case Reasoning:
			// A closing tag alone is left over from one that the prompt opened.
			text = append(text, mark{t.Close, drop, 0})
			reasoning = append(reasoning, mark{t.Close, shut, 0}, mark{t.Open, drop, 0})
		case ToolCall:
			m.tools[i] = newMode(ToolCall, []mark{{t.Close, shut, 0}})
		}
	}
	m.text = newMode(Text, text)
	m.reasoning = newMode(Reasoning, reasoning)

	withStops := append([]mark(nil), harmonyMarks...)
	for _, s := range opt.Stops {
		withStops = append(withStops, mark{strings.ToValidUTF8(s, ""), stop, 0})
	}
	m.message = [3]*mode{newMode(Text, withStops), newMode(Reasoning, harmonyMarks), newMode(ToolCall, harmonyMarks)}
	m.harmonyHeader = newMode(header, harmonyMarks)
	return m
}

// find returns the mark spelt so.
func (m *mode) find(text string) (mark, bool) {
	for _, k := range m.marks {
		if k.text == text && k.then != stop {
			return k, true
		}
	}
	return mark{}, false
}
