// Package tokenizer turns text into a model's token ids and back, with the vocabulary that a GGUF file carries.
//
// Two kinds are known: SentencePiece ("llama": scores, byte fallback) and byte-level BPE ("gpt2": merges after a
// pre-tokenizer named by the file). Everything else is refused by name in New. The engine encodes prompts and decodes
// answers with it; a Tokenizer is immutable and safe for concurrent use.
//
// Encoding takes time in proportion to n log n at worst, also for one long run without spaces, and memory of some
// hundred bytes per byte of the longest such run. Bytes that are no UTF-8 are encoded byte by byte, so that text
// survives encoding and decoding wherever the vocabulary has all bytes (Qwen's is brought to Unicode's form C first, as
// its makers do). Plain text never becomes a control token
// unless the caller asks for it (parseSpecial), so what a person types cannot forge a turn.
package tokenizer
