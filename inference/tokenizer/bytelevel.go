package tokenizer

import "unicode/utf8"

// Byte-level BPE vocabularies spell each byte as one printable character: itself where it is printable Latin-1, and
// otherwise the next free character from U+0100 on.

// byteOf maps such a character back to its byte; -1 for other characters.
var byteOf = func() (table [0x144]int16) {
	for i := range table {
		table[i] = -1
	}
	next := 0x100
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
			table[b] = int16(b)
			continue
		}
		table[next] = int16(b)
		next++
	}
	return table
}()

// unspell appends the bytes that a token's text stands for; ok is false when it holds a character that stands for none.
func unspell(dst []byte, text string) (out []byte, ok bool) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError || int(r) >= len(byteOf) || byteOf[r] < 0 {
			return dst, false
		}
		dst = append(dst, byte(byteOf[r]))
		i += n
	}
	return dst, true
}
