package stream

import "strings"

// Options says what a Decoder looks for.
type Options struct {
	// Stops end the answer where the text holds one of them; they do not count within reasoning and tool calls. Of
	// two, the one that is complete first ends it.
	Stops []string
	// Tags are the marks around reasoning and tool calls; nil means DefaultTags, an empty list none.
	Tags []Tag
	// InReasoning says that the prompt has opened a reasoning tag already; see OpensReasoning.
	InReasoning bool
	// Harmony says that the model speaks in channels, as gpt-oss does: <|channel|>analysis<|message|>…<|end|>.
	Harmony bool
	// TrimStart drops white space at the start of the text.
	TrimStart bool
}

// Kind tells parts of an answer apart.
type Kind uint8

// The parts of an answer.
const (
	Text Kind = iota
	Reasoning
	ToolCall
	header // of a Harmony message: never shown
)

// Tag is a pair of marks. Without Close the part lasts to the end of the answer.
type Tag struct {
	Kind        Kind
	Open, Close string
}

// DefaultTags are the marks of the model families in use.
func DefaultTags() []Tag {
	return []Tag{
		{Reasoning, "<think>", "</think>"},
		{Reasoning, "<thinking>", "</thinking>"},
		{Reasoning, "<seed:think>", "</seed:think>"},
		{Reasoning, "[THINK]", "[/THINK]"},
		{Reasoning, "◁think▷", "◁/think▷"},
		{Reasoning, "<|START_THINKING|>", "<|END_THINKING|>"},
		{Reasoning, "<|channel>thought", "<channel|>"},
		{ToolCall, "<tool_call>", "</tool_call>"},
		{ToolCall, "<|tool_call|>", ""},
		{ToolCall, "<|python_tag|>", ""},
		{ToolCall, "[TOOL_CALLS]", ""},
		{ToolCall, "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
		{ToolCall, "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"},
	}
}

// OpensReasoning reports whether a rendered prompt ends by opening a reasoning tag, so that the answer starts inside.
func OpensReasoning(prompt string, tags []Tag) bool {
	prompt = strings.TrimRight(prompt, " \n\t")
	for _, t := range orDefault(tags) {
		if t.Kind == Reasoning && t.Open != "" && strings.HasSuffix(prompt, t.Open) {
			return true
		}
	}
	return false
}

// SpeaksHarmony reports whether a chat template is of the kind that Options.Harmony is for.
func SpeaksHarmony(template string) bool {
	return strings.Contains(template, markChannel) && strings.Contains(template, markMessage)
}

func orDefault(tags []Tag) []Tag {
	if tags == nil {
		return DefaultTags()
	}
	return tags
}
