package tokenizer

import "unicode/utf8"

// scanNumber matches \p{N}.
func scanNumber(s string) int { return run(s, number, 0, 1) }

// scanNumbers matches \p{N}{1,limit}, or \p{N}+ when limit is 0.
func scanNumbers(limit int) scanner {
	return func(s string) int { return run(s, number, 0, limit) }
}

// scanThreeDigits matches [0-9][0-9][0-9].
func scanThreeDigits(s string) int {
	if len(s) < 3 {
		return 0
	}
	for i := range 3 {
		if s[i] < '0' || s[i] > '9' {
			return 0
		}
	}
	return 3
}

// scanPunctuation matches one or more of \p{P} and the ASCII characters in extra.
func scanPunctuation(extra string) scanner {
	var more [utf8.RuneSelf]bool
	for i := range len(extra) {
		more[extra[i]] = true
	}
	return func(s string) int {
		pos := 0
		for pos < len(s) {
			r, c, n := next(s[pos:])
			if c&punct == 0 && !(r < utf8.RuneSelf && more[r]) {
				break
			}
			pos += n
		}
		return pos
	}
}

// scanRanges matches one or more characters within sorted ranges of first and last character.
func scanRanges(ranges [][2]rune) scanner {
	return func(s string) int { return runRanges(s, ranges) }
}

func runRanges(s string, ranges [][2]rune) int {
	pos := 0
	for pos < len(s) {
		r, _, n := next(s[pos:])
		if n == 1 && r == utf8.RuneError || !inRanges(r, ranges) {
			break
		}
		pos += n
	}
	return pos
}

func inRanges(r rune, ranges [][2]rune) bool {
	lo, hi := 0, len(ranges)
	for lo < hi {
		mid := (lo + hi) / 2
		if r > ranges[mid][1] {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(ranges) && r >= ranges[lo][0]
}

// scanSpaces matches \s*[\r\n]+|\s+(?!\S)|\s+ when lines is set, \s+(?!\S)|\s+ otherwise.
func scanSpaces(s string, lines bool) int {
	end, lastStart, afterLine := 0, 0, 0
	for end < len(s) {
		_, c, n := next(s[end:])
		if c&space == 0 {
			break
		}
		lastStart = end
		end += n
		if c&newline != 0 {
			afterLine = end
		}
	}
	switch {
	case lines && afterLine > 0:
		return afterLine
	case end < len(s) && lastStart > 0: // the last one goes with the word that follows
		return lastStart
	}
	return end
}

// scanGPT2 matches 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func scanGPT2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	body := s
	if s[0] == ' ' {
		body = s[1:]
	}
	lead := len(s) - len(body)
	if n := run(body, letter, 0, 0); n > 0 {
		return lead + n
	}
	if n := run(body, number, 0, 0); n > 0 {
		return lead + n
	}
	if n := runNot(body, space|letter|number); n > 0 {
		return lead + n
	}
	return scanSpaces(s, false)
}

// contraction matches 's|'t|'re|'ve|'m|'ll|'d, in any case when fold is set.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	a, b := s[1], byte(0)
	if len(s) > 2 {
		b = s[2]
	}
	if fold {
		if len(s) > 2 && s[1:3] == "ſ" { // folds to s
			return 3
		}
		a, b = a|0x20, b|0x20
	}
	switch {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return 2
	case b == 'e' && (a == 'r' || a == 'v'), a == 'l' && b == 'l':
		return 3
	}
	return 0
}

// wordRules are the differences within the Llama 3 family.
type wordRules struct {
	digits int  // most digits of one piece
	marks  bool // marks belong to words
}

// scanWords matches
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
//	\s+(?!\S)|\s+
//
// with [\p{L}\p{M}] in place of \p{L} in words, and \p{M} no punctuation either, when marks is set.
func scanWords(rules wordRules) scanner {
	word := letter
	if rules.marks {
		word |= mark
	}
	return func(s string) int {
		if n := contraction(s, true); n > 0 {
			return n
		}
		_, c, w := next(s)
		if c&(newline|letter|number) == 0 {
			if n := run(s[w:], word, 0, 0); n > 0 {
				return w + n
			}
		}
		if n := run(s, word, 0, 0); n > 0 {
			return n
		}
		if n := run(s, number, 0, rules.digits); n > 0 {
			return n
		}
		if n := scanOther(s, space|word|number, false); n > 0 {
			return n
		}
		return scanSpaces(s, true)
	}
}

// scanOther matches an optional space, one or more characters outside the classes of not, and then line ends (and
// slashes).
func scanOther(s string, not class, slash bool) int {
	lead := 0
	if s[0] == ' ' {
		lead = 1
	}
	n := runNot(s[lead:], not)
	if n == 0 {
		return 0
	}
	n += lead
	for n < len(s) && (s[n] == '\r' || s[n] == '\n' || slash && s[n] == '/') {
		n++
	}
	return n
}
