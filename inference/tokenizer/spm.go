package tokenizer

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spaceMark stands for a space in SentencePiece vocabularies.
const spaceMark = "\u2581"

// spm is a SentencePiece model: neighbours merge, the pair with the best score first, until none is a token.
type spm struct {
	ids     map[string]int32 // tokens that plain text may become
	scores  []float32
	bytes   [256]int32 // byte fallback
	unk     int32
	longest int // bytes of the longest token
}

func (t *Tokenizer) newSPM(src Source) error {
	scores, ok := src.Floats("tokenizer.ggml.scores")
	if !ok || len(scores) != len(t.texts) {
		return fmt.Errorf("tokenizer: %d tokens, but %d scores", len(t.texts), len(scores))
	}
	m := &spm{ids: make(map[string]int32, len(t.texts)), scores: scores, unk: t.unk}
	for i := range m.bytes {
		m.bytes[i] = none
	}
	t.pieces = make([]string, len(t.texts))
	for i, text := range t.texts {
		id := int32(i)
		switch t.types[i] {
		case typeNormal:
			t.pieces[i] = strings.ReplaceAll(text, spaceMark, " ")
			m.add(text, id)
		case typeUserDefined:
			t.pieces[i] = strings.ReplaceAll(text, spaceMark, " ")
			m.add(strings.ReplaceAll(text, " ", spaceMark), id)
		case typeByte:
			b, err := parseByte(text)
			if err != nil {
				return err
			}
			t.pieces[i] = string([]byte{b})
			m.bytes[b] = id
		case typeUnknown:
			if m.unk == none {
				m.unk = id
			}
		}
	}
	t.model, t.addBOS, t.spacePrefix = m, true, true
	return nil
}

func (m *spm) add(text string, id int32) {
	if _, dup := m.ids[text]; !dup && text != "" {
		m.ids[text] = id
		m.longest = max(m.longest, len(text))
	}
}

// parseByte reads "<0x0A>".
func parseByte(text string) (byte, error) {
	if len(text) == 6 && text[:3] == "<0x" && text[5] == '>' {
		if b, err := strconv.ParseUint(text[3:5], 16, 8); err == nil {
			return byte(b), nil
		}
	}
	return 0, fmt.Errorf("tokenizer: byte token %q is not of the form <0x0A>", text)
}

func (m *spm) encode(text string, ids []int32) []int32 {
	text = strings.ReplaceAll(text, " ", spaceMark)
	var c chain
	for i := 0; i < len(text); {
		_, n := utf8.DecodeRuneInString(text[i:])
		id, ok := m.ids[text[i:i+n]]
		if !ok {
			id = none
		}
		c.add(n, id)
		i += n
	}
	c.merge(spmJoiner{m, text})
	for part := range c.all() {
		if part.id != none {
			ids = append(ids, part.id)
			continue
		}
		ids = m.fallback(text[part.from:part.to], ids)
	}
	return ids
}

// spmJoiner joins what is a token together; the best score is the cheapest.
type spmJoiner struct {
	m    *spm
	text string
}

func (j spmJoiner) join(l, r *link) (int32, float32, bool) {
	if int(r.to-l.from) > j.m.longest {
		return none, 0, false
	}
	id, ok := j.m.ids[j.text[l.from:r.to]]
	if !ok {
		return none, 0, false
	}
	score := j.m.scores[id]
	if score != score { // NaN would break the order of the heap
		score = float32(math.Inf(-1))
	}
	return id, -score, true
}

// fallback encodes a character that is no token: as its bytes, or as the unknown token where a byte is missing.
func (m *spm) fallback(part string, ids []int32) []int32 {
	for i := range len(part) {
		if m.bytes[part[i]] == none {
			if m.unk != none {
				ids = append(ids, m.unk)
			}
			return ids
		}
	}
	for i := range len(part) {
		ids = append(ids, m.bytes[part[i]])
	}
	return ids
}
