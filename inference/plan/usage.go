package plan

import "fmt"

// Usage is what the model is wanted for.
type Usage struct {
	Context   int  // positions of a sequence's KV cache
	Sequences int  // requests that run at once, each with its own
	Q8Cache   bool // the KV cache is Q8_0 instead of F16
	Prompt    int  // tokens of the prompt that predictions are for
	Answer    int  // and of the answer
	// Leader is the node at which requests arrive, which always takes part; -1:
	// any may lead.
	Leader int
}

// Defaults fills in what is zero, but Leader.
func (u Usage) Defaults(m *Model) Usage {
	if u.Context == 0 {
		u.Context = min(4096, m.MaxContext)
	}
	if u.Sequences == 0 {
		u.Sequences = 1
	}
	if u.Prompt == 0 {
		u.Prompt = max(1, min(512, u.Context/2))
	}
	if u.Answer == 0 {
		u.Answer = max(1, min(256, u.Context-u.Prompt))
	}
	return u
}

const (
	maxContext   = 1 << 30
	maxSequences = 4096
)

func (u Usage) check(m *Model, nodes int) error {
	switch {
	case u.Context < 1 || u.Context > maxContext || m.MaxContext > 0 && u.Context > m.MaxContext:
		return fmt.Errorf("context of %d: the model takes 1 to %d", u.Context, m.MaxContext)
	case u.Sequences < 1 || u.Sequences > maxSequences:
		return fmt.Errorf("%d sequences at once: 1 to %d are possible", u.Sequences, maxSequences)
	case u.Prompt < 1 || u.Answer < 1 || u.Prompt+u.Answer > u.Context:
		return fmt.Errorf("prompt of %d tokens and answer of %d in a context of %d", u.Prompt, u.Answer, u.Context)
	case u.Leader < -1 || u.Leader >= nodes:
		return fmt.Errorf("leader %d of %d nodes", u.Leader, nodes)
	}
	return nil
}

// cacheBytes is what one element of the KV cache takes.
func (u Usage) cacheBytes() float64 {
	if u.Q8Cache {
		return 34.0 / 32 // a block of 32 values and its scale
	}
	return 2
}

// position is how many positions attention sees on average while decoding.
func (u Usage) position() float64 { return float64(u.Prompt) + float64(u.Answer)/2 }
