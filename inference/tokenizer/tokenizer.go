package tokenizer

import (
	"errors"
	"fmt"
	"strings"
)

// Source is the metadata of a GGUF file; *gguf.File has these methods.
type Source interface {
	String(key string) (string, bool)
	Uint(key string) (uint64, bool)
	Bool(key string) (value, ok bool)
	Strings(key string) ([]string, bool)
	Ints(key string) ([]int32, bool)
	Floats(key string) ([]float32, bool)
}

// Kinds of token, as tokenizer.ggml.token_type numbers them.
const (
	typeNormal      = 1
	typeUnknown     = 2
	typeControl     = 3
	typeUserDefined = 4
	typeUnused      = 5
	typeByte        = 6
)

const none = int32(-1)

// Tokenizer encodes and decodes with one vocabulary.
type Tokenizer struct {
	texts  []string // as in the file
	types  []int32
	pieces []string // the bytes a token stands for, "" for control tokens
	eog    map[int32]bool

	bos, eos, unk  int32 // none where the file names none
	addBOS, addEOS bool
	spacePrefix    bool // a space goes in front of the text
	rstrip         map[int32]bool

	model    model
	special  matcher // control, unknown and user-defined tokens
	literals matcher // user-defined tokens alone
}

// model encodes text that holds no special tokens. ids is appended to.
type model interface {
	encode(text string, ids []int32) []int32
}

// New builds a tokenizer from the tokenizer.ggml.* keys of src. The error names what the file lacks or what is not
// supported. It takes a few tenths of a second for the largest vocabularies.
func New(src Source) (*Tokenizer, error) {
	texts, ok := src.Strings("tokenizer.ggml.tokens")
	if !ok || len(texts) == 0 {
		return nil, errors.New("tokenizer: the file has no vocabulary")
	}
	t := &Tokenizer{texts: texts, bos: none, eos: none, unk: none, rstrip: map[int32]bool{}}
	if err := t.readTypes(src); err != nil {
		return nil, err
	}
	t.bos = t.id(src, "bos_token_id")
	t.eos = t.id(src, "eos_token_id")
	t.unk = t.id(src, "unknown_token_id")
	t.findEOG(src)

	kind, _ := src.String("tokenizer.ggml.model")
	var err error
	switch kind {
	case "llama":
		err = t.newSPM(src)
	case "gpt2":
		err = t.newBPE(src)
	case "":
		err = errors.New("tokenizer: the file does not name its kind (tokenizer.ggml.model)")
	default:
		err = fmt.Errorf("tokenizer: unsupported kind %q, only \"llama\" and \"gpt2\" are", kind)
	}
	if err != nil {
		return nil, err
	}
	override(src, "add_bos_token", &t.addBOS)
	override(src, "add_eos_token", &t.addEOS)
	override(src, "add_space_prefix", &t.spacePrefix)
	t.addBOS = t.addBOS && t.bos != none
	t.addEOS = t.addEOS && t.eos != none
	t.findRStrip(src)
	t.buildMatchers()
	return t, nil
}

// readTypes reads the kind of each token; without the key all are normal.
func (t *Tokenizer) readTypes(src Source) error {
	given, ok := src.Ints("tokenizer.ggml.token_type")
	if ok && len(given) != len(t.texts) {
		return fmt.Errorf("tokenizer: %d tokens, but %d token types", len(t.texts), len(given))
	}
	t.types = make([]int32, len(t.texts))
	for i := range t.types {
		t.types[i] = typeNormal
		if ok && given[i] > 0 {
			t.types[i] = given[i]
		}
	}
	return nil
}

// id reads a token id from the metadata, none when it is absent or outside the vocabulary.
func (t *Tokenizer) id(src Source, key string) int32 {
	v, ok := src.Uint("tokenizer.ggml." + key)
	if !ok || v >= uint64(len(t.texts)) {
		return none
	}
	return int32(v)
}

func override(src Source, key string, flag *bool) {
	if v, ok := src.Bool("tokenizer.ggml." + key); ok {
		*flag = v
	}
}

// findRStrip marks the control tokens that swallow the white space after them: all but a few in the Phi-3 family, whose
// files do not say so.
func (t *Tokenizer) findRStrip(src Source) {
	name, _ := src.String("general.name")
	arch, _ := src.String("general.architecture")
	name = strings.ToLower(name)
	if !strings.Contains(name, "phi-3") && !strings.Contains(name, "phi3") && arch != "phi3" {
		return
	}
	if _, spm := t.model.(*spm); !spm {
		return // Phi-4 and its kin share the architecture, not the rule
	}
	for id, kind := range t.types {
		switch t.texts[id] {
		case "<unk>", "<s>", "<|endoftext|>":
		case "</s>":
			t.rstrip[int32(id)] = true
		default:
			if kind == typeControl || kind == typeUserDefined {
				t.rstrip[int32(id)] = true
			}
		}
	}
}

// VocabSize returns the number of tokens; ids run from 0 to one less.
func (t *Tokenizer) VocabSize() int { return len(t.texts) }

// BOS returns the token that begins a text; false when the file names none.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos != none }

// EOS returns the token that ends a text; false when the file names none.
func (t *Tokenizer) EOS() (int32, bool) { return t.eos, t.eos != none }

// AddsBOS reports whether Encode with addSpecial puts BOS in front.
func (t *Tokenizer) AddsBOS() bool { return t.addBOS }

// IsEOG reports whether id ends a generation: end of sequence, of turn, or of message.
func (t *Tokenizer) IsEOG(id int32) bool { return t.eog[id] }

// IsControl reports whether id is a token that carries no text, such as a turn marker.
func (t *Tokenizer) IsControl(id int32) bool {
	return t.valid(id) && (t.types[id] == typeControl || t.types[id] == typeUnknown)
}

// TokenText returns the token as the vocabulary spells it, control tokens too ("<|im_start|>"); "" for an id outside
// the vocabulary.
func (t *Tokenizer) TokenText(id int32) string {
	if !t.valid(id) {
		return ""
	}
	return t.texts[id]
}

// TokenID returns the id of the token spelt so; control tokens too.
func (t *Tokenizer) TokenID(text string) (int32, bool) {
	for id, s := range t.texts {
		if s == text {
			return int32(id), true
		}
	}
	return none, false
}

func (t *Tokenizer) valid(id int32) bool { return id >= 0 && int(id) < len(t.texts) }
