package tokenizer

// cjkRanges is [一-龥぀-ゟ゠-ヿ] of DeepSeek V3, sorted.
var cjkRanges = [][2]rune{{0x3040, 0x309F}, {0x30A0, 0x30FF}, {0x4E00, 0x9FA5}}

// scanDeepSeek3 matches
//
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|
//	\s*[\r\n]+|\s+(?!\S)|\s+
func scanDeepSeek3(s string) int {
	r, c, w := next(s)
	if r < 0x80 && c&(punct|symbol) != 0 {
		n := w
		for n < len(s) && (s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z') {
			n++
		}
		if n > w {
			return n
		}
	}
	if c&(newline|letter|punct|symbol) == 0 {
		if n := run(s[w:], letter|mark, 0, 0); n > 0 {
			return w + n
		}
	}
	if n := run(s, letter|mark, 0, 0); n > 0 {
		return n
	}
	lead := 0
	if r == ' ' {
		lead = 1
	}
	if n := run(s[lead:], punct|symbol, 0, 0); n > 0 {
		n += lead
		for n < len(s) && (s[n] == '\r' || s[n] == '\n') {
			n++
		}
		return n
	}
	return scanSpaces(s, true)
}

var (
	deepseekLLMSplit = splitter{
		scanLineEnd, spaced(func(s string) int { return runRanges(s, casedRanges) }),
		spaced(func(s string) int { return runRanges(s, deepseekPunctuation) }), scanTrailingSpace,
		scanRanges(eastAsianRanges), scanNumbers(0),
	}
	deepseekCoderSplit = splitter{
		scanLineEnd, spaced(func(s string) int { return run(s, letter, 0, 0) }),
		spaced(func(s string) int { return run(s, punct, 0, 0) }), scanRanges(eastAsianRanges), scanNumber,
	}

	// deepseekPunctuation is [!-/:-~！-／：-～‘-‟　-。], sorted. Letters are in it, but gone before it is asked.
	deepseekPunctuation = [][2]rune{{'!', '/'}, {':', '~'}, {0x2018, 0x201F}, {0x3000, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}}
	// eastAsianRanges is [一-龥ࠀ-一가-퟿], sorted.
	eastAsianRanges = [][2]rune{{0x0800, 0x9FA5}, {0xAC00, 0xD7FF}}
)

// scanLineEnd matches [\r\n].
func scanLineEnd(s string) int {
	if s[0] == '\r' || s[0] == '\n' {
		return 1
	}
	return 0
}

// scanTrailingSpace matches \s+$.
func scanTrailingSpace(s string) int {
	if n := run(s, space, 0, 0); n == len(s) {
		return n
	}
	return 0
}

// spaced matches \s? and then what body matches.
func spaced(body scanner) scanner {
	return func(s string) int {
		_, c, w := next(s)
		if c&space != 0 {
			if n := body(s[w:]); n > 0 {
				return w + n
			}
		}
		return body(s)
	}
}
