package model

import (
	"fmt"
	"math"

	"daisy/inference/gguf"
)

// keys reads an architecture's metadata and keeps the first error, so that a
// list of keys reads as a list.
type keys struct {
	f    *gguf.File
	arch string
	err  error
}

// Most that a hyperparameter may be: beyond every real model, small enough that
// products of two cannot overflow.
const (
	maxLayers = 4096
	maxDim    = 1 << 24
)

// count reads a required positive integer up to most.
func (k *keys) count(key string, most int) int {
	n := k.countOr(key, -1, most)
	if n < 0 && k.err == nil {
		k.fail("%s.%s is missing", k.arch, key)
	}
	return n
}

// countOr is count with a default for an absent key.
func (k *keys) countOr(key string, absent, most int) int {
	n, ok := k.f.Uint(k.arch + "." + key)
	if !ok {
		if _, array := k.f.Ints(k.arch + "." + key); array {
			k.fail("%s.%s differs by layer: %w", k.arch, key, ErrUnsupported)
		}
		return absent
	}
	if n < 1 || n > uint64(most) {
		k.fail("%s.%s = %d is not in 1..%d", k.arch, key, n, most)
		return 1
	}
	return int(n)
}

// float reads a finite number, with a default for an absent key.
func (k *keys) float(key string, absent float64) float32 {
	x, ok := k.f.Float(k.arch + "." + key)
	if !ok {
		return float32(absent)
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		k.fail("%s.%s is %v", k.arch, key, x)
	}
	return float32(x)
}

// text reads a string, with a default for an absent key.
func (k *keys) text(key, absent string) string {
	if s, ok := k.f.String(k.arch + "." + key); ok {
		return s
	}
	return absent
}

func (k *keys) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf(format, args...)
	}
}
