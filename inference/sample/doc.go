// Package sample chooses the next token from a model's logits.
//
// The engine keeps one Sampler per sequence, on the rank that leads it. The steps come in llama.cpp's order, so that
// settings people know give what they expect: logit bias, penalties, top-k, typical, top-p, min-p, temperature, draw.
// Equal seeds, parameters, logits and accepted tokens give equal choices. A Sampler is not safe for concurrent use, does
// not block, and allocates nothing per token once it has seen one vocabulary.
package sample
