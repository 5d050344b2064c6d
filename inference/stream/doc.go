// Package stream turns the pieces of a model's answer, as they come, into what a person reads.
//
// The engine keeps one Decoder per answer and feeds it the bytes of each token. Out come text, reasoning and tool
// calls, apart from each other. What never comes out, wherever the token boundaries fall: half a character, a stop
// string or the start of one, a control token, a thinking tag or part of one. Text is held back only while it may
// still become one of these. The result depends on the bytes alone, not on how they were cut, and takes time in
// proportion to them.
//
// A Decoder never blocks and is not safe for concurrent use.
package stream
