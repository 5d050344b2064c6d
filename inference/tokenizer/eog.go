package tokenizer

// eogNames are tokens that end a generation in the model families that use them, whatever the file's metadata says:
// many files name only one of several. A token spelt so is a control token even if the file marks it otherwise.
var eogNames = map[string]bool{
	"<|eot_id|>": true, "<|eom_id|>": true, "<|im_end|>": true, "<|end|>": true, "<|return|>": true, "<|call|>": true,
	"<|endoftext|>": true, "<|end_of_text|>": true, "<end_of_turn>": true, "<end_of_utterance>": true, "</s>": true,
	"<EOT>": true, "_<EOT>": true, "[EOT]": true, "[EOS]": true, "<eos>": true,
	"<｜end▁of▁sentence｜>": true,
}

// findEOG collects the tokens that end a generation.
func (t *Tokenizer) findEOG(src Source) {
	t.eog = map[int32]bool{}
	var end, ret, call = none, none, none
	for id, text := range t.texts {
		if !eogNames[text] {
			continue
		}
		t.eog[int32(id)] = true
		t.types[id] = typeControl
		switch text {
		case "<|end|>":
			end = int32(id)
		case "<|return|>":
			ret = int32(id)
		case "<|call|>":
			call = int32(id)
		}
	}
	if ret != none && call != none {
		delete(t.eog, end) // in the Harmony format <|end|> only ends one message of several
	}
	for _, key := range []string{"eos_token_id", "eot_token_id", "eom_token_id"} {
		if id := t.id(src, key); id != none {
			t.eog[id] = true
		}
	}
}
