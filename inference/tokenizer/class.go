package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// class holds the Unicode properties that pre-tokenizers ask for.
type class uint16

const (
	letter  class = 1 << iota // \p{L}
	number                    // \p{N}
	mark                      // \p{M}
	punct                     // \p{P}
	symbol                    // \p{S}
	space                     // \s
	newline                   // \r or \n
	upper                     // \p{Lu} or \p{Lt}
	lower                     // \p{Ll}
	uncased                   // \p{Lm}, \p{Lo} or \p{M}
	han                       // script Han
)

var classTables = []struct {
	table *unicode.RangeTable
	class class
}{
	{unicode.L, letter}, {unicode.N, number}, {unicode.M, mark | uncased}, {unicode.P, punct}, {unicode.S, symbol},
	{unicode.White_Space, space}, {unicode.Lu, upper}, {unicode.Lt, upper}, {unicode.Ll, lower}, {unicode.Lm, uncased},
	{unicode.Lo, uncased}, {unicode.Han, han},
}

// lowClasses has the classes of the basic plane, where nearly all text is; the tables of package unicode are searched
// for the rest.
var lowClasses = func() *[1 << 16]class {
	var out [1 << 16]class
	for _, c := range classTables {
		for _, r := range c.table.R16 {
			for x := uint32(r.Lo); x <= uint32(r.Hi); x += uint32(r.Stride) {
				out[x] |= c.class
			}
		}
	}
	out['\r'] |= newline
	out['\n'] |= newline
	return &out
}()

func classOf(r rune) class {
	if uint32(r) < 1<<16 {
		return lowClasses[r]
	}
	var c class
	for _, t := range classTables {
		if unicode.Is(t.table, r) {
			c |= t.class
		}
	}
	return c
}

// next returns the first character of s with its class and length; a byte that is no UTF-8 counts as U+FFFD. At the
// end of s the length is 0 and the class has no bit.
func next(s string) (r rune, c class, n int) {
	if s == "" {
		return 0, 0, 0
	}
	if b := s[0]; b < utf8.RuneSelf {
		return rune(b), lowClasses[b], 1
	}
	r, n = utf8.DecodeRuneInString(s)
	return r, classOf(r), n
}

// run returns the length of the longest start of s whose characters have a bit of any and no bit of without; at most
// limit characters when limit is above 0.
func run(s string, any, without class, limit int) int {
	pos := 0
	for count := 0; pos < len(s) && (limit == 0 || count < limit); count++ {
		_, c, n := next(s[pos:])
		if c&any == 0 || c&without != 0 {
			break
		}
		pos += n
	}
	return pos
}

// runNot returns the length of the longest start of s whose characters have no bit of without.
func runNot(s string, without class) int {
	pos := 0
	for pos < len(s) {
		_, c, n := next(s[pos:])
		if c&without != 0 {
			break
		}
		pos += n
	}
	return pos
}
