package tokenizer

import (
	"slices"
	"strings"
)

// matcher finds whole tokens in text, leftmost first and the longest there. It is a trie over bytes.
type matcher struct {
	nodes []trieNode
	first [256]bool // bytes that begin a token
	start string    // the same as a set for strings.IndexAny-like search, when it is one byte
}

type trieNode struct {
	next []trieEdge // sorted by byte
	id   int32      // token that ends here, or none
}

type trieEdge struct {
	b    byte
	node int32
}

func (m *matcher) add(text string, id int32) {
	if text == "" {
		return
	}
	if m.nodes == nil {
		m.nodes = []trieNode{{id: none}}
	}
	m.first[text[0]] = true
	n := int32(0)
	for i := range len(text) {
		at, found := m.edge(n, text[i])
		if !found {
			m.nodes = append(m.nodes, trieNode{id: none})
			m.nodes[n].next = slices.Insert(m.nodes[n].next, at, trieEdge{text[i], int32(len(m.nodes) - 1)})
		}
		n = m.nodes[n].next[at].node
	}
	if m.nodes[n].id == none {
		m.nodes[n].id = id
	}
}

// edge returns where the edge for b is, or belongs, among those of node n.
func (m *matcher) edge(n int32, b byte) (int, bool) {
	return slices.BinarySearchFunc(m.nodes[n].next, b, func(e trieEdge, b byte) int { return int(e.b) - int(b) })
}

// finish prepares the search after the last add.
func (m *matcher) finish() {
	var firsts []byte
	for b, ok := range m.first {
		if ok {
			firsts = append(firsts, byte(b))
		}
	}
	if len(firsts) == 1 {
		m.start = string(firsts)
	}
}

// find returns the first token in text at or after pos. With none, from and to are the length of text and id is none.
func (m *matcher) find(text string, pos int) (from, to int, id int32) {
	for from = pos; from < len(text) && m.nodes != nil; from++ {
		if m.start != "" { // most vocabularies: every special token starts with '<'
			i := strings.IndexByte(text[from:], m.start[0])
			if i < 0 {
				break
			}
			from += i
		}
		if !m.first[text[from]] {
			continue
		}
		if to, id = m.longest(text, from); id != none {
			return from, to, id
		}
	}
	return len(text), len(text), none
}

// longest returns the longest token that starts at from.
func (m *matcher) longest(text string, from int) (to int, id int32) {
	id = none
	n := int32(0)
	for i := from; i < len(text); i++ {
		at, found := m.edge(n, text[i])
		if !found {
			break
		}
		n = m.nodes[n].next[at].node
		if m.nodes[n].id != none {
			to, id = i+1, m.nodes[n].id
		}
	}
	return to, id
}

func (t *Tokenizer) buildMatchers() {
	for id, kind := range t.types {
		switch kind {
		case typeUserDefined:
			t.literals.add(t.texts[id], int32(id))
			t.special.add(t.texts[id], int32(id))
		case typeControl, typeUnknown:
			t.special.add(t.texts[id], int32(id))
		}
	}
	t.literals.finish()
	t.special.finish()
}
