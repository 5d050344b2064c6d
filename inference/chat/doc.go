// Package chat renders a conversation into the prompt text that a model was trained on, with the Jinja template that
// its GGUF file carries.
//
// The engine calls it before it encodes a prompt. Templates are run by gonja, in an environment like the one that
// transformers gives them (trimmed blocks, raise_exception, strftime_now, Python's string methods and JSON), with
// gonja's gaps closed by rewriting the source where that is possible. What is refused: templates above
// MaxTemplateBytes, inclusion and inheritance, recursive loops, and multiplication (a one-line way to fill memory).
//
// Templates come from files of strangers. They can read nothing but their inputs; running is bounded in time, depth of
// macros, size of values and of output; a panic in the library becomes an error. A Template is immutable and safe for
// concurrent use.
package chat
