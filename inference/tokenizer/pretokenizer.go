package tokenizer

import "unicode/utf8"

// scanner matches one regular expression at the start of s and returns the length of the match, 0 for none.
type scanner func(s string) int

// splitter cuts text with a sequence of scanners: each cuts the pieces left by the one before into its matches and the
// stretches between them.
type splitter []scanner

// each calls emit with the pieces of s in order; together they are s.
func (sp splitter) each(s string, emit func(string)) {
	if len(sp) == 0 {
		if s != "" {
			emit(s)
		}
		return
	}
	gap := 0
	for pos := 0; pos < len(s); {
		n := sp[0](s[pos:])
		if n == 0 {
			_, w := utf8.DecodeRuneInString(s[pos:])
			pos += w
			continue
		}
		if pos > gap {
			sp[1:].each(s[gap:pos], emit)
		}
		sp[1:].each(s[pos:pos+n], emit)
		pos += n
		gap = pos
	}
	if gap < len(s) {
		sp[1:].each(s[gap:], emit)
	}
}

// preTokenizer is what a name in tokenizer.ggml.pre implies.
type preTokenizer struct {
	split      splitter
	wholeWords bool // a piece that is a token is taken whole, without merging
	addBOS     bool // unless the file says otherwise
	compose    bool // text is brought to Unicode's form C first
}

var (
	gpt2Split     = splitter{scanGPT2}
	digitsSplit   = splitter{scanNumber, scanGPT2}
	llama3Split   = splitter{scanWords(wordRules{digits: 3})}
	qwen2Split    = splitter{scanWords(wordRules{digits: 1})}
	gpt4oSplit    = splitter{scanCased(casedRules{digits: 3, contractions: true, slash: true})}
	deepseek3     = splitter{scanNumbers(3), scanRanges(cjkRanges), scanDeepSeek3}
	llama3Pre     = preTokenizer{split: llama3Split, wholeWords: true, addBOS: true}
	preTokenizers = map[string]preTokenizer{
		"default": {split: splitter{scanPunctuation("$+<=>^~|"), scanGPT2, scanNumbers(0), scanThreeDigits}},
		"falcon":  {split: splitter{scanPunctuation("$+<=>^~|`"), scanGPT2, scanThreeDigits}},

		"gpt-2": {split: gpt2Split}, "phi-2": {split: gpt2Split}, "mpt": {split: gpt2Split}, "olmo": {split: gpt2Split},
		"exaone4": {split: gpt2Split}, "trillion": {split: gpt2Split}, "granite-docling": {split: gpt2Split},

		"smollm": {split: digitsSplit}, "starcoder": {split: digitsSplit}, "refact": {split: digitsSplit},
		"command-r": {split: digitsSplit}, "codeshell": {split: digitsSplit}, "exaone": {split: digitsSplit},
		"minerva-7b": {split: digitsSplit},

		"llama-bpe": llama3Pre, "llama3": llama3Pre, "llama-v3": llama3Pre, "falcon3": llama3Pre, "falcon-h1": llama3Pre,
		"pixtral": llama3Pre, "lfm2": llama3Pre,
		"dbrx": {split: llama3Split}, "smaug-bpe": {split: llama3Split}, "glm4": {split: llama3Split},
		"chatglm-bpe": {split: llama3Split},

		"qwen2": {split: qwen2Split, compose: true}, "deepseek-r1-qwen": {split: qwen2Split}, "stablelm2": {split: qwen2Split},
		"hunyuan": {split: qwen2Split}, "solar-open": {split: qwen2Split}, "megrez": {split: qwen2Split},
		"grok-2": {split: qwen2Split},
		"qwen35": {split: splitter{scanWords(wordRules{digits: 1, marks: true})}, compose: true},

		"gpt-4o": {split: gpt4oSplit}, "llama4": {split: gpt4oSplit}, "kanana2": {split: gpt4oSplit},
		"minimax-m2": {split: gpt4oSplit},
		"tekken":     {split: splitter{scanCased(casedRules{digits: 1, slash: true})}, wholeWords: true, addBOS: true},
		"kimi-k2":    {split: splitter{scanCased(casedRules{digits: 3, contractions: true, han: true})}},

		"deepseek-llm":   {split: deepseekLLMSplit},
		"deepseek-coder": {split: deepseekCoderSplit},
		"deepseek-v3":    {split: deepseek3}, "hunyuan-dense": {split: deepseek3}, "joyai-llm": {split: deepseek3},
	}
)
