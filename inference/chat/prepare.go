package chat

import (
	"errors"
	"fmt"
	"strings"
)

// prepare checks a template's source and rewrites what gonja does not understand:
//   - "(a if c else b)" inside brackets becomes "((c) and [a] or [b])[0]", which is as lazy;
//   - "(a | f).method()" becomes "([a | f])[0].method()";
//   - {% generation %}, a mark for training, goes.
func prepare(source string) (string, error) {
	if len(source) > MaxTemplateBytes {
		return "", fmt.Errorf("has %d bytes, at most %d are allowed", len(source), MaxTemplateBytes)
	}
	var b strings.Builder
	blocks := 0
	for rest := source; rest != ""; {
		at := nextTag(rest)
		b.WriteString(rest[:at])
		rest = rest[at:]
		if rest == "" {
			break
		}
		end, err := tagEnd(rest)
		if err != nil {
			return "", err
		}
		tag := rest[:end]
		rest = rest[end:]
		if tag[1] == '#' {
			b.WriteString(tag)
			continue
		}
		out, name, err := rewriteTag(tag)
		if err != nil {
			return "", err
		}
		switch {
		case strings.HasPrefix(name, "end"):
			blocks--
		case name == "if" || name == "for" || name == "macro" || name == "call" || name == "filter" || name == "with":
			if blocks++; blocks > maxDepth {
				return "", fmt.Errorf("nests blocks more than %d deep", maxDepth)
			}
		}
		b.WriteString(out)
		if name == "raw" {
			stop := strings.Index(rest, "endraw")
			if stop < 0 {
				return "", errors.New("raw without endraw")
			}
			stop = strings.LastIndex(rest[:stop], "{%")
			if stop < 0 {
				return "", errors.New("raw without endraw")
			}
			b.WriteString(rest[:stop])
			rest = rest[stop:]
		}
	}
	return b.String(), nil
}

// nextTag returns where the next "{{", "{%" or "{#" is, or the length of s.
func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '{' || s[i+1] == '%' || s[i+1] == '#') {
			return i
		}
	}
	return len(s)
}

// tagEnd returns where the tag at the start of s ends, strings in it skipped.
func tagEnd(s string) (int, error) {
	if s[1] == '#' {
		if i := strings.Index(s, "#}"); i >= 0 {
			return i + 2, nil
		}
		return 0, errors.New("a comment does not end")
	}
	end := "}}"
	if s[1] == '%' {
		end = "%}"
	}
	braces := 0
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' || c == '"':
			n := stringEnd(s[i:])
			if n < 0 {
				return 0, errors.New("a string does not end")
			}
			i += n - 1
		case braces == 0 && strings.HasPrefix(s[i:], end):
			return i + 2, nil
		case c == '{':
			braces++
		case c == '}':
			braces--
		}
	}
	return 0, errors.New("a tag does not end")
}

// stringEnd returns the length of the string literal at the start of s, -1 when it does not end.
func stringEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return -1
}

// rewriteTag rewrites one {{ }} or {% %} and returns the statement's name, "" for an expression.
func rewriteTag(tag string) (out, name string, err error) {
	body := tag[2 : len(tag)-2]
	open, end := tag[:2], tag[len(tag)-2:]
	if len(body) > 0 && strings.ContainsRune("-+", rune(body[0])) {
		open, body = open+body[:1], body[1:]
	}
	if len(body) > 0 && strings.ContainsRune("-+", rune(body[len(body)-1])) {
		body, end = body[:len(body)-1], body[len(body)-1:]+end
	}
	if tag[1] == '%' {
		name, _, _ = strings.Cut(strings.TrimSpace(body), " ")
		name = strings.TrimFunc(name, func(r rune) bool { return r < 'a' || r > 'z' })
		switch name {
		case "generation":
			return open + " if true " + end, "if", nil
		case "endgeneration":
			return open + " endif " + end, "endif", nil
		}
	}
	toks, err := lex(body)
	if err != nil {
		return "", "", err
	}
	for i, t := range toks {
		if name == "for" && t == "recursive" {
			return "", "", errors.New("recursive loops are not supported")
		}
		if t == "**" || t == "*" {
			if name != "macro" || i == 0 || toks[i-1] != "(" && toks[i-1] != "," {
				return "", "", errors.New("multiplication is not supported")
			}
		}
	}
	r := rewriter{toks: toks}
	text, err := r.group("", 0)
	if err != nil {
		return "", "", err
	}
	return open + " " + text + " " + end, name, nil
}

// lex cuts an expression into strings, words, brackets and operators; white space is dropped.
func lex(s string) ([]string, error) {
	var out []string
	for i := 0; i < len(s); {
		c, n := s[i], 1
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case c == '\'' || c == '"':
			if n = stringEnd(s[i:]); n < 0 {
				return nil, errors.New("a string does not end")
			}
		case isWord(c):
			for i+n < len(s) && (isWord(s[i+n]) || s[i+n] == '.' && c >= '0' && c <= '9' && i+n+1 < len(s) && s[i+n+1] >= '0' && s[i+n+1] <= '9') {
				n++
			}
		default:
			for _, op := range []string{"**", "//", "==", "!=", "<=", ">="} {
				if strings.HasPrefix(s[i:], op) {
					n = 2
				}
			}
		}
		out = append(out, s[i:i+n])
		i += n
	}
	return out, nil
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

type rewriter struct {
	toks []string
	pos  int
}

var closers = map[string]string{"(": ")", "[": "]", "{": "}"}

// group rewrites up to the bracket that closes it; end is "" for a whole tag, whose own condition gonja understands.
func (r *rewriter) group(end string, depth int) (string, error) {
	if depth > maxDepth {
		return "", fmt.Errorf("nests brackets more than %d deep", maxDepth)
	}
	var b strings.Builder
	var item []string // of the comma-separated item under way
	flush := func() {
		if end == "" {
			b.WriteString(strings.Join(item, " "))
		} else {
			b.WriteString(ternary(item))
		}
		item = item[:0]
	}
	for r.pos < len(r.toks) {
		t := r.toks[r.pos]
		r.pos++
		switch {
		case closers[t] != "":
			inner, err := r.group(closers[t], depth+1)
			if err != nil {
				return "", err
			}
			part := t + inner + closers[t]
			// A call or an index belongs to the word before it, without a space.
			switch n := len(item); {
			case n > 0 && t != "{" && !isOperator(item[n-1]):
				item[n-1] += part
			case t == "(" && r.pos < len(r.toks) && r.toks[r.pos] == ".":
				item = append(item, "(["+inner+"])[0]") // gonja loses what a method of "(a|b)" is called on
			default:
				item = append(item, part)
			}
		case t == ")" || t == "]" || t == "}":
			if t != end {
				return "", fmt.Errorf("has %q where %q should be", t, end)
			}
			flush()
			return b.String(), nil
		case end != "" && (t == "," || t == ":" && end != ")" || t == "=" && end == ")"):
			flush()
			b.WriteString(t + " ")
		case t == "." && len(item) > 0 && r.pos < len(r.toks):
			item[len(item)-1] += "." + r.toks[r.pos]
			r.pos++
		default:
			item = append(item, t)
		}
	}
	if end != "" {
		return "", fmt.Errorf("lacks a %q", end)
	}
	flush()
	return b.String(), nil
}

// isOperator reports whether a bracket after word opens a value of its own.
func isOperator(word string) bool {
	switch word {
	case "if", "else", "elif", "and", "or", "not", "in", "is", "set", "for":
		return true
	}
	last := word[len(word)-1]
	return !isWord(last) && last != ')' && last != ']' && last != '}' && last != '\'' && last != '"'
}

// ternary rewrites "a if c else b".
func ternary(item []string) string {
	at := -1
	for i, t := range item {
		if t == "if" {
			at = i
			break
		}
	}
	if at <= 0 {
		return strings.Join(item, " ")
	}
	value, rest := strings.Join(item[:at], " "), item[at+1:]
	for i, t := range rest {
		if t == "else" {
			return "((" + strings.Join(rest[:i], " ") + ") and [" + value + "] or [" + ternary(rest[i+1:]) + "])[0]"
		}
	}
	return "((" + strings.Join(rest, " ") + ") and [" + value + "] or [''])[0]"
}
