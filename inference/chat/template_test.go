package chat

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var hello = []Message{{"system", "Be kind."}, {"user", "Hi"}}

// render runs a template over hello.
func render(t testing.TB, source string) (string, error) {
	tmpl, err := New(source, Special{BOS: "<s>", EOS: "</s>"})
	if err != nil {
		return "", err
	}
	tmpl.limit = 2 * time.Second
	return tmpl.Render(hello, Options{AddGenerationPrompt: true, Now: time.Date(2026, 3, 9, 14, 5, 0, 0, time.UTC)})
}

func TestNoTemplateGivesChatML(t *testing.T) {
	for _, source := range []string{"", " \n"} {
		tmpl, err := New(source, Special{})
		require.NoError(t, err)
		assert.True(t, tmpl.Default())
		got, err := tmpl.Render(hello, Options{AddGenerationPrompt: true})
		require.NoError(t, err)
		assert.Equal(t, "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", got)
		got, err = tmpl.Render(nil, Options{})
		require.NoError(t, err)
		assert.Empty(t, got)
	}
}

// What templates expect of Python and Jinja, each with the result that Jinja gives.
func TestConstructs(t *testing.T) {
	for source, want := range map[string]string{
		`{{ bos_token }}{{ messages[0].content }}{{ messages[-1]['role'] }}`:                                                   "<s>Be kind.user",
		`{{ messages[1:][-1].content }}`:                                                                                       "Hi",
		`{{ ('a' if messages else 'b') + ('c' if false else 'd') }}`:                                                           "ad",
		`{{ ('a' if false) }}|{{ 'x' if false }}`:                                                                              "|",
		`{{ ('a' if false else 'b' if false else 'c') }}`:                                                                      "c",
		`{{ [1 if true else 2, 3 if false else 4][1] }}`:                                                                       "4",
		`{{ ('x' if true else raise_exception('lazy')) }}`:                                                                     "x",
		`{{ "split a,b"|replace('split ', '') }}`:                                                                              "a,b",
		`{{ 'a</think>b'.split('</think>')[-1].lstrip('b') }}{{ 'b'.split('x')[-1] }}`:                                         "b",
		`{{ 'a b  c'.split()|join('-') }} {{ 'a,b,c'.split(',', 1)|join(';') }} {{ 'a,b,c'.rsplit(',', 1)|join(';') }}`:        "a-b-c a;b,c a,b;c",
		`{{ ('  x  '|trim).replace('x', 'yy', 1).upper() }}`:                                                                   "YY",
		`{{ 'abc'.startswith('ab') and 'abc'.endswith('bc') and not 'abc'.startswith(['x', 'y']) }}`:                           "True",
		`{{ '{}-{0}-{k}-{{}}'.format('a', k='b') }}`:                                                                           "a-a-b-{}",
		`{{ "it's"|tojson }} {{ ['a<b', 1, 2.0, none, true, 'न']|tojson }}`:                                                    `"it's" ["a<b", 1, 2.0, null, true, "न"]`,
		`{{ {'b': 1, 'a': [2, {'c': '\n'}]}|tojson }}`:                                                                         `{"b": 1, "a": [2, {"c": "\n"}]}`,
		`{{ {'b': [1], 'a': {}}|tojson(indent=2) }}`:                                                                           "{\n  \"b\": [\n    1\n  ],\n  \"a\": {}\n}",
		`{% for k, v in {'b': 1, 'a': 2}.items() %}{{ k }}{{ v }}{% endfor %}`:                                                 "b1a2",
		`{% for k, v in {'b': 1, 'a': 2}|dictsort %}{{ k }}{{ v }}{% endfor %}`:                                                "a2b1",
		`{{ messages[0].get('role') }}{{ messages[0].get('x', 'y') }}{{ messages[0].get('z') is none }}`:                       "systemyTrue",
		`{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}`:                  "2",
		`{% for m in messages %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{% if not loop.last %},{% endif %}{% endfor %}`: "1TrueFalse,2FalseTrue",
		`{% for i in range(3) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}`:                                   "02",
		`{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}`:                                      "01",
		`{% macro m(x, y='d') %}<{{ x }}{{ y }}>{% endmacro %}{{ m('a') }}{{ m('a', y='b') }}`:                                 "<ad><ab>",
		`{% set x %}in{{ 1 + 1 }}{% endset %}{{ x }}`:                                                                          "in2",
		`{% generation %}said{% endgeneration %}`:                                                                              "said",
		`{{ strftime_now('%d %b %Y %H:%M %-d %q %%') }}`:                                                                       "09 Mar 2026 14:05 9 %q %",
		`{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list|first }}`:                             "Hi",
		`{{ (messages|selectattr('role', 'equalto', 'user')|list)[-1].content }}`:                                              "Hi",
		"{% if tools is defined and tools %}tools{% else %}none{% endif %}":                                                    "none",
		"a\n  {% if true %}\nb\n  {% endif %}\nc":                                                                              "a\nb\nc",
		"a {%- if true -%} b {%- endif %} c":                                                                                   "ab c",
		`{# comment with {{ and ' #}x`:                                                                                         "x",
		`{% raw %}{{ x }}{% endraw %}`:                                                                                         "{{ x }}",
		`{{ "a' }} b" }}`:                                                                                                      "a' }} b",
	} {
		got, err := render(t, source)
		if assert.NoError(t, err, source) {
			assert.Equal(t, want, got, source)
		}
	}
}

func TestRefusalKeepsTheTemplatesWords(t *testing.T) {
	_, err := render(t, `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% endfor %}`)
	var refused *Refused
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "System role not supported", refused.Reason)
}

func TestTools(t *testing.T) {
	tmpl, err := New(`{% for t in tools %}{{ t|tojson }}{% endfor %}`, Special{})
	require.NoError(t, err)
	got, err := tmpl.Render(nil, Options{Tools: []json.RawMessage{[]byte(`{"z":1,"a":[true,null,1e3,"\u0928"]}`)}})
	require.NoError(t, err)
	assert.Equal(t, `{"z": 1, "a": [true, null, 1000.0, "न"]}`, got)
	for _, bad := range []string{"", "{", "1 2", strings.Repeat("[", 200) + strings.Repeat("]", 200)} {
		_, err := tmpl.Render(nil, Options{Tools: []json.RawMessage{[]byte(bad)}})
		assert.Error(t, err, "%.20s", bad)
	}
}

// Templates are strangers' programs: each of these must end in an error of one line, soon and without a crash.
func TestHostileTemplates(t *testing.T) {
	nested := func(open, mid, end string, n int) string {
		return strings.Repeat(open, n) + mid + strings.Repeat(end, n)
	}
	for name, source := range map[string]string{
		"endless macro":       `{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`,
		"endless pair":        `{% macro f(g) %}{{ g(g) }}{% endmacro %}{{ f(f) }}`,
		"doubling":            `{% set n = namespace(x='xxxxxxxx') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}`,
		"doubling list":       `{% set n = namespace(x=[1,2,3,4]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}`,
		"doubling macro":      `{% macro f(x, n) %}{{ f(x ~ x, n) }}{% endmacro %}{{ f('xxxxxxxxxxxxxxxx', 1) }}`,
		"range":               `{% for i in range(1000000000000) %}{% endfor %}`,
		"range backwards":     `{% for i in range(0, -1000000000000, -1) %}{% endfor %}`,
		"range of no step":    `{% for i in range(0, 1, 0) %}{% endfor %}`,
		"nested loops":        nested(`{% for i in range(9999) %}`, "", `{% endfor %}`, 8),
		"multiplication":      `{{ 'x' * 1000000000000 }}`,
		"power":               `{{ 9 ** 9 ** 9 ** 9 }}`,
		"replace":             `{% set n = namespace(x='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set n.x = n.x|replace('x', n.x) %}{% endfor %}`,
		"replace method":      `{% set n = namespace(x='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set n.x = n.x.replace('x', n.x) %}{% endfor %}`,
		"join":                `{% set n = namespace(x='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set n.x = range(1000)|join(n.x) %}{% endfor %}`,
		"brackets":            `{{ ` + nested("(", "1", ")", 50_000) + ` }}`,
		"lists":               `{{ ` + nested("[", "1", "]", 50_000) + ` }}`,
		"blocks":              nested(`{% if true %}`, "", `{% endif %}`, 5000),
		"include":             `{% include '/etc/passwd' %}`,
		"import":              `{% import '/etc/passwd' as x %}`,
		"extends":             `{% extends '/etc/passwd' %}`,
		"recursive loop":      `{% for x in messages recursive %}{{ loop(messages) }}{% endfor %}`,
		"too long":            strings.Repeat("x", MaxTemplateBytes+1),
		"open tag":            `{{ 'x'`,
		"open string":         `{{ 'x }}`,
		"open comment":        `{# x`,
		"open raw":            `{% raw %}`,
		"open block":          `{% if x %}`,
		"wrong end":           `{% if x %}{% endfor %}`,
		"wrong bracket":       `{{ (1] }}`,
		"unknown statement":   `{% explode %}`,
		"unknown filter":      `{{ 'x'|explode }}`,
		"unknown method":      `{{ 'x'.explode() }}`,
		"empty separator":     `{{ 'x'.split('') }}`,
		"modulo by zero":      `{{ 1 % 0 }}`,
		"call of no macro":    `{{ messages() }}`,
		"wrong argument":      `{{ 'x'.replace(1, 2) }}`,
		"format":              `{{ '{'.format(1) }}`,
		"format of nothing":   `{{ '{}'.format() }}`,
		"lists do not change": `{{ [1].append(2) }}`,
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := render(t, source)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "\n")
			assert.Less(t, len(err.Error()), 400)
			assert.Less(t, time.Since(start), 20*time.Second)
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	tmpl, err := New(`{% set ns = namespace(x='') %}{% for m in messages %}{% set ns.x = ns.x ~ m.content %}{% endfor %}{{ ns.x }}`, Special{})
	require.NoError(t, err)
	done := make(chan string)
	for i := range 8 {
		go func() {
			text := strings.Repeat(string(rune('a'+i)), 10)
			got, err := tmpl.Render([]Message{{"user", text}, {"user", text}}, Options{})
			if err != nil || got != text+text {
				got = "wrong: " + got
			} else {
				got = ""
			}
			done <- got
		}()
	}
	for range 8 {
		assert.Empty(t, <-done)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{chatML, `{{ ('a' if x else b)|trim }}`, `{% for k, v in {'a': [1, 2][-1]}.items() %}{{ k ~ v }}{% endfor %}`,
		`{% macro m(x) %}{{ x }}{% endmacro %}{{ m(messages[0].content.split('e', 1)) }}`, `{%- set x %}a{% endset -%}`, `{% raw %}{{{% endraw %}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if _, err := render(t, source); err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
	})
}
