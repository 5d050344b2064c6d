package inference

import (
	"errors"
	"time"

	"daisy/inference/chat"
	"daisy/inference/ggml"
	"daisy/inference/gguf"
	"daisy/inference/model"
	"daisy/inference/plan"
	"daisy/inference/sample"
	"daisy/rdma"
)

// Errors that callers tell apart. All others are final for the call.
var (
	// ErrClosed: the engine was closed; load it again.
	ErrClosed = errors.New("the engine is closed")
	// ErrContextFull: prompt and answer need more positions than the KV cache
	// has; shorten the conversation or load with a larger Options.Context.
	ErrContextFull = errors.New("the context is full")
	// ErrNoMemory: the shard, the KV cache and what computing takes do not fit
	// into this machine; use a smaller context or more machines.
	ErrNoMemory = ggml.ErrNoMemory
	// ErrUnsupported: the file is sound, but this engine cannot run it; the
	// wrapped text names what is missing.
	ErrUnsupported = model.ErrUnsupported
)

// Options for Load. The zero value loads the whole model on this machine.
type Options struct {
	// Threads that compute; 0 means one for each core.
	Threads int
	// Context is the KV cache's length in positions; 0 means the model's own
	// limit, at most DefaultContext.
	Context int
	// Group joins the ranks that share the model; nil means one rank. The
	// engine uses it from one goroutine, and Close closes it.
	Group *rdma.Group
	// Plan says who holds what, the same on all ranks. Nil means that all ranks share each layer, as Shares says.
	Plan *plan.Plan
	// Shares are the ranks' relative shares of each layer, by rank, where there is
	// no Plan; nil means equal ones. The same on all ranks.
	Shares []float64
	// Sequences is how many requests run at once, each with a KV cache of Context
	// positions; 0 means one. More wait their turn.
	Sequences int
	// Cache is how keys and values are kept: CacheF16, or CacheQ8 for half the
	// memory at a little loss. The same on all ranks.
	Cache CacheType
	// Apart is for measuring alone, without a Group: what this process computes
	// as one of several ranks that share each layer, but without the others. It
	// leads itself, sums stay the partial ones of its shard, and so what it
	// generates means nothing.
	Apart *Seat
	// SharedCores: other ranks compute on this machine's cores too, so that idle
	// threads must not spin.
	SharedCores bool
	// Source is where the model is read from when it is not a local file; Load
	// takes no path then. Each rank has its own.
	Source *gguf.Source
	// Progress is told how many bytes of this rank's weights are loaded; it may
	// be nil, must not block, and is called from several goroutines in turn.
	Progress func(loaded, total int64)
}

// Seat is a rank of a group.
type Seat struct{ Rank, World int }

// CacheType is the precision of the KV cache.
type CacheType int

// The precisions. CacheQ8 needs heads of a multiple of 32 values.
const (
	CacheF16 CacheType = iota
	CacheQ8
)

// DefaultContext is the KV cache's length when Options.Context is 0.
const DefaultContext = 4096

// Info describes a loaded model. Byte counts are this rank's own.
type Info struct {
	Name          string // from the file, or the file's base name
	Architecture  string
	Parameters    int64 // weights in the whole model
	FileBytes     int64 // the whole file
	WeightBytes   int64 // of this rank's shard
	CacheBytes    int64 // KV cache
	ContextLength int   // positions in the KV cache
	Rank          int
	WorldSize     int
	Threads       int    // of the CPU, where that computes
	Backend       string // "CPU", or the GPU's
	// NoTemplate: the file carries no chat template, so a plain default is
	// used; people should be told.
	NoTemplate bool
}

// Request is one prompt. Either Messages or Prompt is set.
type Request struct {
	// Messages are rendered by the model's chat template.
	Messages []chat.Message
	// Begun, with Messages, is text that the answer begins with already, such as
	// what is left of one that was cut off: the model goes on from it, and only
	// what follows is emitted. ErrUnsupported where the answer's form hides what
	// came before that text, as with models that think first.
	Begun string
	// Prompt is continued as it is, without a template.
	Prompt string
	// Sampling chooses tokens; its zero value is greedy.
	Sampling sample.Params
	// MaxTokens ends the answer; 0 means as long as the context allows.
	MaxTokens int
	// IgnoreEnd bans the tokens that end an answer: for measuring.
	IgnoreEnd bool
	// Stops end the answer before they are shown.
	Stops []string
}

// Delta is a piece of an answer: whole UTF-8 characters, never control tokens.
type Delta struct {
	Text      string // the answer
	Reasoning string // the model's thinking, which people see folded away
	ToolCall  string // a call of a tool, as the model writes it
}

// StopReason says why an answer ended.
type StopReason string

// The ways in which an answer ends without an error.
const (
	StopEnd    StopReason = "end"    // the model ended it, or a stop string
	StopLength StopReason = "length" // MaxTokens
	StopFull   StopReason = "full"   // no position left in the KV cache
)

// Stats measures one request. Prefill spans the prompt up to the first sampled
// token; decode spans the first to the last sampled token, but for the pauses of an
// answer that went on elsewhere.
type Stats struct {
	PromptTokens    int           `json:"prompt_tokens"`
	CachedTokens    int           `json:"cached_tokens"` // of the prompt, found in the KV cache
	GeneratedTokens int           `json:"generated_tokens"`
	DroppedMessages int           `json:"dropped_messages,omitempty"` // oldest ones, which made room in the context
	Prefill         time.Duration `json:"prefill_ns"`
	Decode          time.Duration `json:"decode_ns"`
	Stop            StopReason    `json:"stop"`
	Resumed         Resumption    `json:"resumed,omitzero"`
}

// Resumption counts what it took to let an answer go on elsewhere. One that had no
// token yet begins anew, and that is not counted.
type Resumption struct {
	Times   int           `json:"times"`      // each is a pause between two tokens
	Tokens  int           `json:"tokens"`     // prefilled again
	Prefill time.Duration `json:"prefill_ns"` // until the next token was sampled
}

// PrefillTokensPerSecond is 0 when nothing was computed.
func (s Stats) PrefillTokensPerSecond() float64 {
	return perSecond(s.PromptTokens-s.CachedTokens, s.Prefill)
}

// DecodeTokensPerSecond counts (n-1) tokens over the time from the first to the
// last, those after a pause left out, and is 0 when none is left.
func (s Stats) DecodeTokensPerSecond() float64 {
	return perSecond(s.GeneratedTokens-1-s.Resumed.Times, s.Decode)
}

func perSecond(n int, d time.Duration) float64 {
	if n <= 0 || d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
