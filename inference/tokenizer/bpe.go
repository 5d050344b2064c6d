package tokenizer

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// bpe is a byte-level BPE model: text is split by the pre-tokenizer, and in each piece neighbours merge, the earliest
// rule of the merge list first.
type bpe struct {
	split        splitter
	compose      bool // to Unicode's form C, before splitting
	bytes        [256]int32
	merges       map[uint64]mergeRule // by the two tokens joined
	words        map[string]int32     // whole pieces that are tokens, where these win over merging
	unk          int32
	wholeLongest int
}

type mergeRule struct {
	rank int32
	id   int32 // the token it makes
}

func mergeKey(l, r int32) uint64 { return uint64(uint32(l))<<32 | uint64(uint32(r)) }

func (t *Tokenizer) newBPE(src Source) error {
	name, ok := src.String("tokenizer.ggml.pre")
	if !ok {
		name = "default"
	}
	pre, ok := preTokenizers[name]
	if !ok {
		return fmt.Errorf("tokenizer: unsupported pre-tokenizer %q", name)
	}
	rules, ok := src.Strings("tokenizer.ggml.merges")
	if !ok {
		return errors.New("tokenizer: the file has no merges")
	}
	m := &bpe{split: pre.split, compose: pre.compose, unk: none, merges: make(map[uint64]mergeRule, len(rules))}
	if t.unk != none && t.types[t.unk] == typeUnknown {
		m.unk = t.unk // never a control token, such as one that ends the text
	}
	words := t.readByteLevel(m)
	for rank, rule := range rules {
		if err := m.addRule(words, int32(rank), rule); err != nil {
			return err
		}
	}
	if pre.wholeWords {
		m.words = words
		for w := range words {
			m.wholeLongest = max(m.wholeLongest, len(w))
		}
	}
	t.model, t.addBOS = m, pre.addBOS
	return nil
}

// readByteLevel fills in what each token stands for, and returns the tokens that text may become, by their bytes.
func (t *Tokenizer) readByteLevel(m *bpe) map[string]int32 {
	for i := range m.bytes {
		m.bytes[i] = none
	}
	words := make(map[string]int32, len(t.texts))
	t.pieces = make([]string, len(t.texts))
	var buf []byte
	for i, text := range t.texts {
		switch t.types[i] {
		case typeControl, typeUnknown:
			continue
		case typeUserDefined:
			t.pieces[i] = text
		}
		var spelt bool
		if buf, spelt = unspell(buf[:0], text); !spelt {
			t.pieces[i] = text
			continue
		}
		word := string(buf)
		if t.types[i] != typeUserDefined {
			t.pieces[i] = word
		}
		if _, dup := words[word]; dup || word == "" {
			continue
		}
		words[word] = int32(i)
		if len(word) == 1 {
			m.bytes[word[0]] = int32(i)
		}
	}
	return words
}

// addRule reads "left right". Rules about tokens that the vocabulary lacks are left out, since they cannot apply.
func (m *bpe) addRule(words map[string]int32, rank int32, rule string) error {
	if len(rule) < 3 {
		return fmt.Errorf("tokenizer: merge %q is not two tokens", rule)
	}
	cut := strings.IndexByte(rule[1:], ' ') + 1
	if cut == 0 {
		return fmt.Errorf("tokenizer: merge %q is not two tokens", rule)
	}
	var room [64]byte
	left, ok := unspell(room[:0], rule[:cut])
	if !ok {
		return nil
	}
	l, okL := words[string(left)]
	both, ok := unspell(left, rule[cut+1:])
	if !ok {
		return nil
	}
	r, okR := words[string(both[len(left):])]
	id, okID := words[string(both)]
	if !okL || !okR || !okID {
		return nil
	}
	key := mergeKey(l, r)
	if _, dup := m.merges[key]; !dup {
		m.merges[key] = mergeRule{rank, id}
	}
	return nil
}

func (m *bpe) encode(text string, ids []int32) []int32 {
	if m.compose {
		text = norm.NFC.String(text)
	}
	var c chain
	m.split.each(text, func(word string) {
		ids = m.encodeWord(&c, word, ids)
	})
	return ids
}

func (m *bpe) encodeWord(c *chain, word string, ids []int32) []int32 {
	if m.words != nil && len(word) <= m.wholeLongest {
		if id, ok := m.words[word]; ok {
			return append(ids, id)
		}
	}
	c.reset()
	for i := range len(word) {
		c.add(1, m.bytes[word[i]])
	}
	c.merge(m)
	for part := range c.all() {
		switch {
		case part.id != none:
			ids = append(ids, part.id)
		case m.unk != none:
			ids = append(ids, m.unk)
		}
	}
	return ids
}

func (m *bpe) join(l, r *link) (int32, float32, bool) {
	if l.id == none || r.id == none {
		return none, 0, false
	}
	rule, ok := m.merges[mergeKey(l.id, r.id)]
	return rule.id, float32(rule.rank), ok
}
