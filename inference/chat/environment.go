package chat

import (
	"errors"
	"io"
	"reflect"
	"strings"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
)

const onlyName = "chat template"

// memory is a loader that knows one template and nothing else: no template can read files.
type memory string

func (m memory) Read(name string) (io.Reader, error) {
	if name != onlyName {
		return nil, errors.New("templates cannot include others")
	}
	return strings.NewReader(string(m)), nil
}

func (m memory) Resolve(name string) (string, error)         { return name, nil }
func (m memory) Inherit(name string) (loaders.Loader, error) { return m, nil }

// filters that chat templates use and that cannot blow up what they are given; our own are added in environment.
var safeFilters = []string{
	"abs", "capitalize", "count", "d", "default", "e", "escape", "first", "float", "int", "last",
	"length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "round", "safe", "select",
	"selectattr", "sort", "string", "sum", "title", "trim", "truncate", "unique", "upper", "wordcount",
}

// environment returns what templates find. It is built anew for each template, since gonja's sets are mutable.
func environment() *exec.Environment {
	filters := map[string]exec.FilterFunction{
		"tojson": filterJSON, "replace": filterReplace, "join": filterJoin, "indent": filterIndent,
		"items": filterItems, "dictsort": filterDictSort,
	}
	for _, name := range safeFilters {
		if f, ok := builtins.Filters.Get(name); ok {
			filters[name] = func(e *exec.Evaluator, in *exec.Value, params *exec.VarArgs) *exec.Value {
				return asList(f(e, in, params))
			}
		}
	}
	namespace, _ := builtins.GlobalFunctions.Get("namespace")
	dict, _ := builtins.GlobalFunctions.Get("dict")
	return &exec.Environment{
		Context:           exec.NewContext(map[string]any{"namespace": namespace, "dict": dict, "range": rangeList}),
		Filters:           exec.NewFilterSet(filters),
		Tests:             builtins.Tests,
		ControlStructures: structures(),
		Methods: exec.Methods{
			Str: stringMethods, Dict: dictMethods, List: listMethods,
			Int: exec.NewMethodSet[int](nil), Float: exec.NewMethodSet[float64](nil), Bool: exec.NewMethodSet[bool](nil),
		},
	}
}

// asList gives a sequence that gonja made our indexing.
func asList(v *exec.Value) *exec.Value {
	if v.Val.Kind() != reflect.Slice {
		return v
	}
	if _, ok := v.Interface().(list); ok {
		return v
	}
	out := make(list, v.Val.Len())
	for i := range out {
		out[i] = v.Val.Index(i).Interface()
	}
	return exec.AsValue(out)
}

// rangeList is Python's range as a list. (gonja's runs a goroutine that a break would leave behind.)
func rangeList(e *exec.Evaluator, va *exec.VarArgs) (list, error) {
	g := guardOf(e.Environment.Context)
	n := make([]int, len(va.Args))
	for i, a := range va.Args {
		if !a.IsInteger() {
			return nil, errors.New("range takes integers")
		}
		n[i] = a.Integer()
	}
	start, stop, step := 0, 0, 1
	switch len(n) {
	case 1:
		stop = n[0]
	case 2:
		start, stop = n[0], n[1]
	case 3:
		start, stop, step = n[0], n[1], n[2]
	}
	if len(n) < 1 || len(n) > 3 || step == 0 {
		return nil, errors.New("range takes one to three integers, the step not 0")
	}
	out := list{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if err := g.room(len(out) * 64); err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	return out, nil
}
