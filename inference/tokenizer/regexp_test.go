package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
	"github.com/stretchr/testify/require"
)

// expressions are what the scanners stand for, as published with the models.
var expressions = map[string][]string{
	"gpt-2":     {gpt2Expression},
	"smollm":    {`\p{N}`, gpt2Expression},
	"falcon":    {"[\\p{P}\\$\\+<=>\\^~\\|`]+", gpt2Expression, `[0-9][0-9][0-9]`},
	"default":   {`[\p{P}\$\+<=>\^~\|]+`, gpt2Expression, `\p{N}+`, `[0-9][0-9][0-9]`},
	"llama-bpe": {strings.ReplaceAll(wordsExpression, "DIGITS", `\p{N}{1,3}`)},
	"qwen2":     {strings.ReplaceAll(wordsExpression, "DIGITS", `\p{N}`)},
	"qwen35": {strings.NewReplacer("DIGITS", `\p{N}`, `]?\p{L}+`, `]?[\p{L}\p{M}]+`, `[^\s\p{L}\p{N}]+`, `[^\s\p{L}\p{M}\p{N}]+`).
		Replace(wordsExpression)},
	"tekken": {casedExpression("", `\p{N}`)},
	"gpt-4o": {casedExpression(contractionExpression+"?", `\p{N}{1,3}`)},
	"deepseek-v3": {`\p{N}{1,3}`, "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
		`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" + `{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`},
	"deepseek-coder": {`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, "[\u0800-\u9fa5\uac00-\ud7ff]+", `\p{N}`},
}

const (
	gpt2Expression        = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	contractionExpression = `(?:'[sSſ]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`
	wordsExpression       = contractionExpression + `|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

func casedExpression(contraction, digits string) string {
	upper, lower := `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`, `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	return `[^\r\n\p{L}\p{N}]?` + upper + `*` + lower + `+` + contraction + `|[^\r\n\p{L}\p{N}]?` + upper + `+` + lower + `*` +
		contraction + `|` + digits + `| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
}

// splitByExpressions cuts text as a chain of "isolated" splits does.
func splitByExpressions(t *testing.T, text string, chain []*regexp2.Regexp) []string {
	pieces := []string{text}
	for _, re := range chain {
		var finer []string
		for _, p := range pieces {
			runes, at := []rune(p), 0
			m, err := re.FindRunesMatch(runes)
			for ; m != nil && err == nil; m, err = re.FindNextMatch(m) {
				if m.Index > at {
					finer = append(finer, string(runes[at:m.Index]))
				}
				finer = append(finer, m.String())
				at = m.Index + m.Length
			}
			require.NoError(t, err)
			if at < len(runes) {
				finer = append(finer, string(runes[at:]))
			}
		}
		pieces = finer
	}
	return pieces
}

// The scanners must cut random text exactly as the regular expressions do.
func TestScannersEqualTheirExpressions(t *testing.T) {
	alphabet := []string{"a", "Z", "z", "é", "À", "ſ", "K", "'", "s", "t", "re", "LL", "d", " ", "  ", "\n", "\r", "\t", ".", "!", "-", "/", "_", "$", "+", "<",
		"~", "`", "0", "12", "345", "½", "٣", "中", "々", "〇", "カ", "\u0301", "\u093f", "न", "ǅ", "ʰ", "ا", "\u200d", "👩", "𐐀", "𐐨", "𠀀", "\u00a0",
		"\u3000", "\u2028", "\u0085", "…", "“", "。", "！", "\x00", "가"}
	for name, list := range expressions {
		t.Run(name, func(t *testing.T) {
			var chain []*regexp2.Regexp
			for _, e := range list {
				chain = append(chain, regexp2.MustCompile(e, regexp2.None))
			}
			rng := rand.New(rand.NewPCG(3, 9))
			rounds := 3000
			if raceEnabled {
				rounds = 300
			}
			for range rounds {
				var b strings.Builder
				for range 1 + rng.IntN(25) {
					b.WriteString(alphabet[rng.IntN(len(alphabet))])
				}
				var got []string
				preTokenizers[name].split.each(b.String(), func(p string) { got = append(got, p) })
				require.Equal(t, splitByExpressions(t, b.String(), chain), got, "%q", b.String())
			}
		})
	}
}
