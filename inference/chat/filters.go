package chat

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// filterItems lists a mapping's keys and values in order.
func filterItems(_ *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	return exec.AsValue(itemList(pairs(in)))
}

func itemList(all []*exec.Pair) list {
	out := list{}
	for _, p := range all {
		out = append(out, list{p.Key.Interface(), p.Value.Interface()})
	}
	return out
}

// filterDictSort lists them by key, upper and lower case alike.
func filterDictSort(_ *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	all := slices.Clone(pairs(in))
	slices.SortStableFunc(all, func(a, b *exec.Pair) int {
		return strings.Compare(strings.ToLower(a.Key.String()), strings.ToLower(b.Key.String()))
	})
	return exec.AsValue(itemList(all))
}

func filterReplace(e *exec.Evaluator, in *exec.Value, params *exec.VarArgs) *exec.Value {
	if in.IsError() || len(params.Args) < 2 {
		return in
	}
	n := -1
	if len(params.Args) > 2 {
		n = params.Args[2].Integer()
	}
	s, err := replace(in.String(), params.Args[0].String(), params.Args[1].String(), n, guardOf(e.Environment.Context).maxValue)
	if err != nil {
		return exec.AsValue(err)
	}
	return exec.AsValue(s)
}

func filterJoin(e *exec.Evaluator, in *exec.Value, params *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	if attribute := params.GetKeywordArgument("attribute", nil); !attribute.IsNil() {
		return exec.AsValue(errors.New("join by attribute is not supported"))
	}
	sep := ""
	if len(params.Args) > 0 {
		sep = params.Args[0].String()
	}
	s, err := join(in, sep, guardOf(e.Environment.Context).maxValue)
	if err != nil {
		return exec.AsValue(err)
	}
	return exec.AsValue(s)
}

// filterIndent puts spaces in front of all lines but the first, unless it is asked to.
func filterIndent(e *exec.Evaluator, in *exec.Value, params *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	width, first := params.GetKeywordArgument("width", 4), params.GetKeywordArgument("first", false)
	if len(params.Args) > 0 {
		width = params.Args[0]
	}
	if len(params.Args) > 1 {
		first = params.Args[1]
	}
	pad := strings.Repeat(" ", min(max(width.Integer(), 0), 64))
	lines := strings.Split(in.String(), "\n")
	limit := guardOf(e.Environment.Context).maxValue
	if utf8.RuneCountInString(in.String())+len(lines)*len(pad) > limit {
		return exec.AsValue(errors.New("indent of a text that is too long"))
	}
	for i, l := range lines {
		if (i > 0 || first.IsTrue()) && strings.TrimSpace(l) != "" {
			lines[i] = pad + l
		}
	}
	return exec.AsValue(strings.Join(lines, "\n"))
}
