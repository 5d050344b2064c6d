package tokenizer

import "strings"

// Piece returns the bytes that id adds to a text; they may be part of a character. Control tokens and ids outside the
// vocabulary give none: TokenText spells them. The result is the caller's.
func (t *Tokenizer) Piece(id int32) []byte { return t.AppendPiece(nil, id) }

// AppendPiece appends the bytes of Piece to dst.
func (t *Tokenizer) AppendPiece(dst []byte, id int32) []byte {
	if !t.valid(id) {
		return dst
	}
	return append(dst, t.pieces[id]...)
}

// Decode returns the text of ids without control tokens, and without the space that Encode puts in front where the
// file asks for one. It may hold invalid UTF-8 when ids end inside a character.
func (t *Tokenizer) Decode(ids []int32) string {
	var b strings.Builder
	strip := t.spacePrefix
	for _, id := range ids {
		if !t.valid(id) {
			continue
		}
		p := t.pieces[id]
		if strip && p != "" {
			if t.types[id] == typeNormal {
				p = strings.TrimPrefix(p, " ")
			}
			strip = false
		}
		b.WriteString(p)
	}
	return b.String()
}
