package stream

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Delta is what came out since the last call; the parts are empty when nothing did.
type Delta struct {
	Text, Reasoning, ToolCall string
}

// Empty reports whether nothing came out.
func (d Delta) Empty() bool { return d == Delta{} }

// Decoder takes an answer apart while it comes.
type Decoder struct {
	modes *modes
	mode  *mode
	state int32 // of the mode's automaton

	partial []byte // the start of a character
	held    []byte // text that may be the start of a mark
	spaces  []byte // white space at the end of a reasoning part, shown only if more follows
	header  []byte // of the Harmony message
	trim    bool   // white space is dropped until something else comes
	part    bool   // the next text belongs to another message than the text before it
	said    bool   // text has been shown
	marked  bool   // a Harmony mark has been seen, so what is between messages is no text
	stopped bool
	out     [3][]byte
}

// New returns a decoder for one answer.
func New(opt Options) *Decoder {
	d := &Decoder{modes: buildModes(opt), trim: opt.TrimStart}
	d.mode = d.modes.text
	switch {
	case opt.Harmony:
		d.mode = d.modes.harmonyHeader // the prompt ends in <|start|>assistant
	case opt.InReasoning:
		d.mode, d.trim = d.modes.reasoning, true
	}
	return d
}

// Write takes the bytes of one token that is no control token, and returns what can be shown. p is not kept.
func (d *Decoder) Write(p []byte) Delta {
	for len(p) > 0 && !d.stopped {
		if len(d.partial) == 0 {
			if utf8.FullRune(p) {
				_, n := utf8.DecodeRune(p)
				d.char(p[:n])
				p = p[n:]
				continue
			}
			d.partial = append(d.partial, p...)
			break
		}
		d.partial = append(d.partial, p[0])
		p = p[1:]
		d.complete()
	}
	return d.take()
}

// complete moves what is a character, or cannot become one, out of partial.
func (d *Decoder) complete() {
	for len(d.partial) > 0 && utf8.FullRune(d.partial) {
		_, n := utf8.DecodeRune(d.partial)
		var c [utf8.UTFMax]byte
		copy(c[:], d.partial[:n])
		d.partial = append(d.partial[:0], d.partial[n:]...)
		d.char(c[:n])
	}
}

// Control takes a control token by its name in the vocabulary. It is never shown, but may be a tag.
func (d *Decoder) Control(name string) Delta {
	if d.stopped {
		return d.take()
	}
	d.release()
	if m, ok := d.mode.find(name); ok {
		d.act(m)
	} else if m, ok := d.modes.harmonyHeader.find(name); ok && (name == markChannel || name == markStart || name == markMessage) {
		d.act(m)
	}
	return d.take()
}

// Flush ends the answer: what was held back comes out, as far as it is text.
func (d *Decoder) Flush() Delta {
	if !d.stopped {
		d.release()
		if d.mode.kind == header && !d.marked {
			// There never was a message: what looked like its header is the answer.
			text := d.header
			d.mode, d.header = d.modes.message[Text], nil
			for _, r := range string(text) {
				d.feed(utf8.AppendRune(nil, r))
			}
			d.release()
		}
	}
	d.stopped = true
	return d.take()
}

// Stopped reports whether a stop string, or Flush, has ended the answer; Write does nothing from then on.
func (d *Decoder) Stopped() bool { return d.stopped }

// release gives up holding: no more characters follow what there is.
func (d *Decoder) release() {
	if len(d.partial) > 0 {
		d.partial = d.partial[:0]
		d.feed([]byte(string(utf8.RuneError)))
	}
	held := d.held
	d.held, d.state = d.held[:0], 0
	d.emit(d.mode.kind, held)
}

// char takes one character, or one byte that is none.
func (d *Decoder) char(c []byte) {
	if len(c) == 1 && c[0] >= utf8.RuneSelf {
		c = []byte(string(utf8.RuneError))
	}
	d.feed(c)
}

// feed runs one character through the automaton and shows what can no longer be part of a mark.
func (d *Decoder) feed(c []byte) {
	if d.stopped {
		return
	}
	a := d.mode.machine
	for _, b := range c {
		d.state = a.step(d.state, b)
	}
	d.held = append(d.held, c...)
	n := &a.nodes[d.state]
	if n.event >= 0 {
		before := len(d.held) - int(n.size)
		d.emit(d.mode.kind, d.held[:before])
		m := d.mode.marks[n.event]
		d.held, d.state = d.held[:0], 0
		d.act(m)
		return
	}
	if safe := len(d.held) - int(n.depth); safe > 0 {
		d.emit(d.mode.kind, d.held[:safe])
		d.held = d.held[safe:] // append moves it when the room behind is used up: no copy per character
	}
}

// act does what a mark asks for.
func (d *Decoder) act(m mark) {
	switch m.then {
	case stop:
		d.stopped = true
	case open:
		if tool := d.modes.tools[m.tag]; tool != nil {
			d.enter(tool)
		} else {
			d.enter(d.modes.reasoning)
		}
	case shut:
		d.enter(d.modes.text)
		d.trim = !d.said // white space after a tag at the start of an answer belongs to the tag
	case head:
		d.marked = true
		if m.text == markStart || d.mode.kind != header {
			d.header = d.header[:0]
		}
		d.header = append(d.header, m.text...)
		d.enter(d.modes.harmonyHeader)
	case body:
		d.marked = true
		d.enter(d.modes.message[channelKind(string(d.header))])
		d.part = d.said
		d.header = d.header[:0]
	case finish:
		d.marked = true
		d.header = d.header[:0]
		d.enter(d.modes.harmonyHeader)
	}
}

func (d *Decoder) enter(m *mode) {
	d.mode, d.trim = m, true
	d.spaces = d.spaces[:0]
}

// channelKind tells from a header, such as "assistant to=functions.f<|channel|>commentary json", where its message
// belongs.
func channelKind(header string) Kind {
	before, channel, _ := strings.Cut(header, markChannel)
	switch {
	case strings.Contains(before, "to=") || strings.Contains(channel, "to="):
		return ToolCall
	case strings.HasPrefix(strings.TrimSpace(channel), "analysis"):
		return Reasoning
	}
	return Text
}

// maxHeader bounds what is kept of a Harmony header; real ones are far shorter.
const maxHeader = 4 << 10

// emit adds text to a part of the answer.
func (d *Decoder) emit(k Kind, text []byte) {
	if k == header {
		if len(d.header)+len(text) <= maxHeader {
			d.header = append(d.header, text...)
		}
		return
	}
	if d.trim {
		text = bytes.TrimLeftFunc(text, unicode.IsSpace)
		if len(text) == 0 {
			return
		}
		d.trim = false
	}
	if len(text) == 0 {
		return
	}
	if k == Text {
		if d.part {
			d.out[k] = append(d.out[k], "\n\n"...)
		}
		d.said, d.part = true, false
		d.out[k] = append(d.out[k], text...)
		return
	}
	// The line ends in front of a closing tag belong to the tag.
	body := bytes.TrimRightFunc(text, unicode.IsSpace)
	if len(body) > 0 {
		d.out[k] = append(append(d.out[k], d.spaces...), body...)
		d.spaces = d.spaces[:0]
	}
	d.spaces = append(d.spaces, text[len(body):]...)
}

func (d *Decoder) take() Delta {
	delta := Delta{string(d.out[Text]), string(d.out[Reasoning]), string(d.out[ToolCall])}
	for i := range d.out {
		d.out[i] = d.out[i][:0]
	}
	return delta
}
