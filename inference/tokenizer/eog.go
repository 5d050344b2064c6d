package tokenizer

// eogNames are tokens that end a generation in the model families that use them, whatever the file's metadata says:
// many files name only one of several. Those with true are spelt as no ordinary text is, and count as control tokens
// even if the file marks them otherwise. The others are ordinary words in some vocabularies (Qwen writes HTML's </s>
// with one), and count only where the file does not call them normal.
var eogNames = map[string]bool{
	"<|eot_id|>": true, "<|eom_id|>": true, "<|im_end|>": true, "<|end|>": true, "<|return|>": true, "<|call|>": true,
	"<|endoftext|>": true, "<|end_of_text|>": true, "<end_of_turn>": true, "<end_of_utterance>": true,
	"<｜end▁of▁sentence｜>": true,
	"</s>":                false, "<EOT>": false, "_<EOT>": false, "[EOT]": false, "[EOS]": false, "<eos>": false,
}

// findEOG collects the tokens that end a generation.
func (t *Tokenizer) findEOG(src Source) {
	t.eog = map[int32]bool{}
	var end, ret, call = none, none, none
	for id, text := range t.texts {
		certain, known := eogNames[text]
		if !known || !certain && t.types[id] == typeNormal {
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
