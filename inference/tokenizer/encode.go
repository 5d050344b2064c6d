package tokenizer

import "strings"

// Encode returns the token ids of text. With addSpecial, BOS goes in front and EOS behind as the file's flags say,
// but BOS only if text does not start with it already (so a rendered chat prompt is safe either way). With
// parseSpecial, control tokens spelt out in text ("<|im_start|>") become those tokens; without it they are plain
// text. User-defined tokens are found in both cases.
func (t *Tokenizer) Encode(text string, addSpecial, parseSpecial bool) []int32 {
	ids := make([]int32, 0, len(text)/3+4)
	if addSpecial && t.addBOS {
		ids = append(ids, t.bos)
	}
	m := &t.literals
	if parseSpecial {
		m = &t.special
	}
	start := true // at the start of the text or right after a special token
	for pos := 0; pos < len(text); {
		from, to, id := m.find(text, pos)
		if from > pos {
			ids = t.encodePlain(text[pos:from], start, ids)
			start = false
		}
		if id == none {
			break
		}
		if !(id == t.bos && addSpecial && len(ids) == 1 && from == 0 && t.addBOS) {
			ids = append(ids, id)
		}
		start = true
		if t.rstrip[id] {
			to += len(text[to:]) - len(strings.TrimLeft(text[to:], " \t\n\v\f\r"))
		}
		pos = to
	}
	if addSpecial && t.addEOS {
		ids = append(ids, t.eos)
	}
	return ids
}

func (t *Tokenizer) encodePlain(text string, start bool, ids []int32) []int32 {
	if start && t.spacePrefix {
		text = " " + text
	}
	return t.model.encode(text, ids)
}
