package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// maxJSONDepth bounds how deep tool descriptions may nest.
const maxJSONDepth = 100

// decodeTools reads JSON into values that keep the order of keys; nil for none, as templates expect.
func decodeTools(tools []json.RawMessage) (any, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	out := list{}
	for _, raw := range tools {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		v, err := decodeValue(d, 0)
		if err != nil {
			return nil, err
		}
		if _, err := d.Token(); err != io.EOF {
			return nil, errors.New("more than one value")
		}
		out = append(out, v)
	}
	return out, nil
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxJSONDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			out := list{}
			for d.More() {
				v, err := decodeValue(d, depth+1)
				if err != nil {
					return nil, err
				}
				out = append(out, v)
			}
			_, err := d.Token()
			return out, err
		}
		dict := exec.NewDict()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			dict.Pairs = append(dict.Pairs, &exec.Pair{Key: exec.AsValue(key), Value: exec.AsValue(v)})
		}
		_, err := d.Token()
		return dict, err
	case json.Number:
		if i, err := strconv.Atoi(t.String()); err == nil {
			return i, nil
		}
		return t.Float64()
	}
	return t, nil
}

// pairs returns the entries of a mapping: in order where it has one, else by key.
func pairs(v *exec.Value) []*exec.Pair {
	if d, ok := v.Interface().(*exec.Dict); ok {
		return d.Pairs
	}
	if d, ok := v.Interface().(exec.Dict); ok {
		return d.Pairs
	}
	out := v.Items()
	sort.Slice(out, func(i, j int) bool { return out[i].Key.String() < out[j].Key.String() })
	return out
}

// filterJSON is tojson as transformers defines it: Python's json.dumps, no escaping of HTML or of other scripts.
func filterJSON(e *exec.Evaluator, in *exec.Value, params *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	w := jsonWriter{limit: guardOf(e.Environment.Context).maxValue, itemSep: ", ", keySep: ": "}
	indent := params.GetKeywordArgument("indent", nil)
	if len(params.Args) > 0 {
		indent = params.Args[0]
	}
	if indent.IsInteger() && indent.Integer() >= 0 {
		w.indent, w.pretty, w.itemSep = strings.Repeat(" ", min(indent.Integer(), 16)), true, ","
	}
	if seps := params.GetKeywordArgument("separators", nil); seps.Len() == 2 && seps.IsList() {
		w.itemSep, w.keySep = seps.Index(0).String(), seps.Index(1).String()
	}
	if err := w.value(in, 0); err != nil {
		return exec.AsValue(err)
	}
	return exec.AsSafeValue(w.b.String())
}

type jsonWriter struct {
	b               strings.Builder
	limit           int
	pretty          bool
	indent          string
	itemSep, keySep string
}

func (w *jsonWriter) value(v *exec.Value, depth int) error {
	if w.b.Len() > w.limit || depth > maxJSONDepth {
		return errors.New("tojson of a value that is too large")
	}
	switch {
	case v.IsNil():
		w.b.WriteString("null")
	case v.IsBool():
		w.b.WriteString(strconv.FormatBool(v.Bool()))
	case v.IsInteger():
		w.b.WriteString(strconv.Itoa(v.Integer()))
	case v.IsFloat():
		w.b.WriteString(pythonFloat(v.Float()))
	case v.IsString():
		w.str(v.String())
	case v.IsList():
		items := reflect.Indirect(v.Val)
		return w.nested('[', ']', items.Len(), depth, func(i int) error {
			return w.value(exec.ToValue(items.Index(i)), depth+1)
		})
	case v.IsDict():
		all := pairs(v)
		return w.nested('{', '}', len(all), depth, func(i int) error {
			w.str(all[i].Key.String())
			w.b.WriteString(w.keySep)
			return w.value(all[i].Value, depth+1)
		})
	default:
		return fmt.Errorf("tojson of a value that is no data: %s", v.Val.Kind())
	}
	return nil
}

func (w *jsonWriter) nested(open, end byte, n, depth int, item func(int) error) error {
	w.b.WriteByte(open)
	for i := range n {
		if i > 0 {
			w.b.WriteString(w.itemSep)
		}
		w.line(depth + 1)
		if err := item(i); err != nil {
			return err
		}
	}
	if n > 0 {
		w.line(depth)
	}
	w.b.WriteByte(end)
	return nil
}

func (w *jsonWriter) line(depth int) {
	if w.pretty {
		w.b.WriteByte('\n')
		for range depth {
			w.b.WriteString(w.indent)
		}
	}
}

func (w *jsonWriter) str(s string) {
	w.b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(r)
		case r == '\n':
			w.b.WriteString(`\n`)
		case r == '\r':
			w.b.WriteString(`\r`)
		case r == '\t':
			w.b.WriteString(`\t`)
		case r == '\b':
			w.b.WriteString(`\b`)
		case r == '\f':
			w.b.WriteString(`\f`)
		case r < ' ':
			fmt.Fprintf(&w.b, `\u%04x`, r)
		default:
			w.b.WriteRune(r) // U+FFFD for what is no UTF-8
		}
	}
	w.b.WriteByte('"')
}

func pythonFloat(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if abs := max(f, -f); abs == 0 || abs >= 1e-4 && abs < 1e16 {
		s = strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
	}
	return s
}
