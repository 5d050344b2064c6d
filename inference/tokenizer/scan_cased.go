package tokenizer

// casedRules are the differences within the GPT-4o family.
type casedRules struct {
	digits       int  // most digits of one piece
	contractions bool // 's and the like stay with the word
	slash        bool // slashes after punctuation stay with it
	han          bool // runs of Han characters are pieces of their own
}

// scanCased matches, with U for [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and L for [\p{Ll}\p{Lm}\p{Lo}\p{M}],
//
//	[^\r\n\p{L}\p{N}]?U*L+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?U+L*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
//	\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// and with han set, \p{Han}+ before all, and U and L without \p{Han}.
func scanCased(rules casedRules) scanner {
	without := class(0)
	if rules.han {
		without = han
	}
	return func(s string) int {
		if rules.han {
			if n := run(s, han, 0, 0); n > 0 {
				return n
			}
		}
		if n := casedWord(s, without); n > 0 {
			if rules.contractions {
				n += contraction(s[n:], true)
			}
			return n
		}
		if n := run(s, number, 0, rules.digits); n > 0 {
			return n
		}
		if n := scanOther(s, space|letter|number, rules.slash); n > 0 {
			return n
		}
		return scanSpaces(s, true)
	}
}

// casedWord matches [^\r\n\p{L}\p{N}]?U*L+|[^\r\n\p{L}\p{N}]?U+L*, the optional character first with, then without.
func casedWord(s string, without class) int {
	_, c, lead := next(s)
	if c&(newline|letter|number) != 0 {
		lead = 0
	}
	withLead, lowerWithLead := 0, false
	if lead > 0 {
		withLead, lowerWithLead = caseRun(s[lead:], without)
		if lowerWithLead {
			return lead + withLead
		}
	}
	n, hasLower := caseRun(s, without)
	if hasLower {
		return n
	}
	if withLead > 0 {
		return lead + withLead
	}
	return n
}

// caseRun matches U*L+ and returns true, or else U+L* and false.
func caseRun(s string, without class) (int, bool) {
	pos, afterBoth := 0, 0
	for pos < len(s) {
		_, c, n := next(s[pos:])
		if c&without != 0 || c&(upper|uncased) == 0 {
			break
		}
		pos += n
		if c&uncased != 0 {
			afterBoth = pos
		}
	}
	if n := run(s[pos:], lower|uncased, without, 0); n > 0 {
		return pos + n, true
	}
	if afterBoth > 0 { // U* gives back until L+ has a character, one that is in both
		return afterBoth, true
	}
	return pos, false
}
