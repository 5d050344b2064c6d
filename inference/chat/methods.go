package chat

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// list is a sequence with Python's indexing; gonja's own misses the last index from the end.
type list []any

// GetItem implements exec.ItemGetter.
func (l list) GetItem(key any) (*exec.Value, bool) {
	i, ok := key.(int)
	if ok && i < 0 {
		i += len(l)
	}
	if !ok || i < 0 || i >= len(l) {
		return exec.AsValue(nil), false
	}
	return exec.ToValue(l[i]), true
}

type args struct {
	va  *exec.VarArgs
	err error
}

// str returns the i-th argument as a string; ok is false when it is absent or None.
func (a *args) str(i int) (s string, ok bool) {
	if i >= len(a.va.Args) || a.va.Args[i].IsNil() {
		return "", false
	}
	if v := a.va.Args[i]; v.IsString() {
		return v.String(), true
	}
	a.err = errors.New("argument is not a string")
	return "", false
}

// num returns the i-th argument as an integer, or what it is by default.
func (a *args) num(i, otherwise int) int {
	if i >= len(a.va.Args) {
		return otherwise
	}
	if v := a.va.Args[i]; v.IsInteger() {
		return v.Integer()
	}
	a.err = errors.New("argument is not an integer")
	return otherwise
}

type stringMethod func(s string, a *args) any

var stringMethods = func() *exec.MethodSet[string] {
	set := map[string]exec.Method[string]{}
	for name, f := range map[string]stringMethod{
		"strip":  func(s string, a *args) any { return strip(s, a, true, true) },
		"lstrip": func(s string, a *args) any { return strip(s, a, true, false) },
		"rstrip": func(s string, a *args) any { return strip(s, a, false, true) },
		"upper":  func(s string, _ *args) any { return strings.ToUpper(s) },
		"lower":  func(s string, _ *args) any { return strings.ToLower(s) },
		"title": func(s string, _ *args) any {
			inWord := false
			return strings.Map(func(r rune) rune {
				defer func() { inWord = unicode.IsLetter(r) }()
				if inWord {
					return unicode.ToLower(r)
				}
				return unicode.ToTitle(r)
			}, s)
		},
		"capitalize": func(s string, _ *args) any {
			for i, r := range s {
				if i == 0 {
					return string(unicode.ToTitle(r)) + strings.ToLower(s[len(string(r)):])
				}
			}
			return s
		},
		"startswith":   func(s string, a *args) any { return anyOf(a, func(p string) bool { return strings.HasPrefix(s, p) }) },
		"endswith":     func(s string, a *args) any { return anyOf(a, func(p string) bool { return strings.HasSuffix(s, p) }) },
		"removeprefix": func(s string, a *args) any { p, _ := a.str(0); return strings.TrimPrefix(s, p) },
		"removesuffix": func(s string, a *args) any { p, _ := a.str(0); return strings.TrimSuffix(s, p) },
		"find":         func(s string, a *args) any { p, _ := a.str(0); return runeIndex(s, strings.Index(s, p)) },
		"rfind":        func(s string, a *args) any { p, _ := a.str(0); return runeIndex(s, strings.LastIndex(s, p)) },
		"count":        func(s string, a *args) any { p, _ := a.str(0); return strings.Count(s, p) },
		"split":        func(s string, a *args) any { return split(s, a, false) },
		"rsplit":       func(s string, a *args) any { return split(s, a, true) },
		"splitlines":   func(s string, _ *args) any { return splitLines(s) },
		"isdigit": func(s string, _ *args) any {
			return s != "" && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
		},
		"isspace": func(s string, _ *args) any { return s != "" && strings.TrimSpace(s) == "" },
	} {
		set[name] = func(self string, _ *exec.Value, va *exec.VarArgs) (any, error) {
			a := &args{va: va}
			return f(self, a), a.err
		}
	}
	set["replace"] = func(self string, _ *exec.Value, va *exec.VarArgs) (any, error) {
		a := &args{va: va}
		from, ok := a.str(0)
		to, ok2 := a.str(1)
		n := a.num(2, -1)
		if a.err != nil || !ok || !ok2 {
			return nil, errors.New("replace takes two strings")
		}
		return replace(self, from, to, n, maxMethodBytes)
	}
	set["format"] = func(self string, _ *exec.Value, va *exec.VarArgs) (any, error) { return format(self, va) }
	set["join"] = func(self string, _ *exec.Value, va *exec.VarArgs) (any, error) {
		return join(va.First(), self, maxMethodBytes)
	}
	return exec.NewMethodSet(set)
}()

// maxMethodBytes bounds the strings that methods make, which know no guard.
const maxMethodBytes = 64 << 20

func strip(s string, a *args, left, right bool) string {
	cut := unicode.IsSpace
	if chars, ok := a.str(0); ok {
		cut = func(r rune) bool { return strings.ContainsRune(chars, r) }
	}
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	return s
}

// anyOf applies test to the first argument, a string or a list of them.
func anyOf(a *args, test func(string) bool) bool {
	v := a.va.First()
	if v.IsString() {
		return test(v.String())
	}
	found := false
	v.Iterate(func(_, _ int, item, _ *exec.Value) bool {
		found = test(item.String())
		return !found
	}, func() {})
	return found
}

// runeIndex turns a byte index into one of characters.
func runeIndex(s string, at int) int {
	if at < 0 {
		return -1
	}
	return len([]rune(s[:at]))
}

func split(s string, a *args, fromRight bool) list {
	sep, given := a.str(0)
	n := a.num(1, -1)
	if given && sep == "" {
		a.err = errors.New("empty separator")
		return nil
	}
	out := list{}
	if fromRight && n >= 0 {
		for ; n > 0; n-- {
			at := strings.LastIndex(s, sep)
			if !given || at < 0 {
				break
			}
			out = append(list{s[at+len(sep):]}, out...)
			s = s[:at]
		}
		return append(list{s}, out...)
	}
	if !given {
		for s = strings.TrimLeftFunc(s, unicode.IsSpace); s != ""; s = strings.TrimLeftFunc(s, unicode.IsSpace) {
			at := strings.IndexFunc(s, unicode.IsSpace)
			if at < 0 || n == 0 {
				return append(out, strings.TrimRightFunc(s, unicode.IsSpace))
			}
			out, s, n = append(out, s[:at]), s[at:], n-1
		}
		return out
	}
	parts := -1
	if n >= 0 {
		parts = n + 1
	}
	for _, p := range strings.SplitN(s, sep, parts) {
		out = append(out, p)
	}
	return out
}

func splitLines(s string) list {
	out := list{}
	for s != "" {
		at := strings.IndexAny(s, "\r\n")
		if at < 0 {
			return append(out, s)
		}
		out = append(out, s[:at])
		if strings.HasPrefix(s[at:], "\r\n") {
			at++
		}
		s = s[at+1:]
	}
	return out
}

// replace is strings.Replace with a bound on the result.
func replace(s, from, to string, n, limit int) (string, error) {
	times := strings.Count(s, from)
	if n >= 0 {
		times = min(times, n)
	}
	if grow := len(to) - len(from); grow > 0 && times > (limit-len(s))/grow {
		return "", fmt.Errorf("replace makes more than %d bytes", limit)
	}
	return strings.Replace(s, from, to, n), nil
}

// format is Python's str.format without conversions: {}, {0} and {name}.
func format(s string, va *exec.VarArgs) (string, error) {
	var b strings.Builder
	auto := 0
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:at])
		if strings.HasPrefix(s[at:], "{{") || strings.HasPrefix(s[at:], "}}") {
			b.WriteByte(s[at])
			s = s[at+2:]
			continue
		}
		end := strings.IndexByte(s[at:], '}')
		if s[at] == '}' || end < 0 {
			return "", errors.New("format string with a single brace")
		}
		field := s[at+1 : at+end]
		s = s[at+end+1:]
		i, err := strconv.Atoi(field)
		if field == "" {
			i, err = auto, nil
			auto++
		}
		switch v, named := va.KwArgs[field]; {
		case named:
			b.WriteString(v.String())
		case err == nil && i >= 0 && i < len(va.Args):
			b.WriteString(va.Args[i].String())
		default:
			return "", fmt.Errorf("format has no value for %q", field)
		}
		if b.Len() > maxMethodBytes {
			return "", fmt.Errorf("format makes more than %d bytes", maxMethodBytes)
		}
	}
	return b.String(), nil
}

// join is Python's sep.join with a bound on the result.
func join(items *exec.Value, sep string, limit int) (string, error) {
	var b strings.Builder
	var err error
	items.Iterate(func(i, _ int, item, _ *exec.Value) bool {
		text := item.String()
		if b.Len()+len(sep)+len(text) > limit {
			err = fmt.Errorf("join makes more than %d bytes", limit)
			return false
		}
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(text)
		return true
	}, func() {})
	return b.String(), err
}

var listMethods = exec.NewMethodSet(map[string]exec.Method[[]any]{
	"append": func(_ []any, self *exec.Value, va *exec.VarArgs) (any, error) {
		return nil, errors.New("lists cannot be changed here")
	},
	"index": func(l []any, _ *exec.Value, va *exec.VarArgs) (any, error) {
		for i, v := range l {
			if exec.ToValue(v).EqualValueTo(va.First()) {
				return i, nil
			}
		}
		return nil, errors.New("not in list")
	},
})

var dictMethods = exec.NewMethodSet(map[string]exec.Method[map[string]any]{
	"get": func(_ map[string]any, self *exec.Value, va *exec.VarArgs) (any, error) {
		for _, p := range pairs(self) {
			if p.Key.EqualValueTo(va.First()) {
				return p.Value.Interface(), nil
			}
		}
		if len(va.Args) > 1 {
			return va.Args[1].Interface(), nil
		}
		return va.GetKeywordArgument("default", nil).Interface(), nil
	},
	"keys": func(_ map[string]any, self *exec.Value, _ *exec.VarArgs) (any, error) {
		out := list{}
		for _, p := range pairs(self) {
			out = append(out, p.Key.Interface())
		}
		return out, nil
	},
	"values": func(_ map[string]any, self *exec.Value, _ *exec.VarArgs) (any, error) {
		out := list{}
		for _, p := range pairs(self) {
			out = append(out, p.Value.Interface())
		}
		return out, nil
	},
	"items": func(_ map[string]any, self *exec.Value, _ *exec.VarArgs) (any, error) {
		return itemList(pairs(self)), nil
	},
})
