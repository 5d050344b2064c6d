package gguf

import (
	"math"
	"slices"
)

// metadata reads the key-value pairs.
func (p *parser) metadata(f *File, n uint64) {
	// A pair takes at least 13 bytes of the file, and about 200 of memory with its place in the index.
	if !p.take(int64(min(n, MaxKeys))*13, int64(min(n, MaxKeys))*200) {
		return
	}
	f.meta = make(map[string]any, n)
	f.keys = make([]string, 0, n)
	for range n {
		key := p.str("a metadata key", MaxKeyBytes)
		kind := p.u32()
		if p.err == nil && key == "" {
			p.fail("a metadata key is empty")
		}
		if _, dup := f.meta[key]; dup {
			p.fail("metadata key %q is there twice", printable(key))
		}
		v := p.value(key, kind)
		if p.err != nil {
			return
		}
		f.meta[key] = v
		f.keys = append(f.keys, key)
	}
}

// value reads one value: bool, string, a sized integer or float, or a slice of one of these.
func (p *parser) value(key string, kind uint32) any {
	switch kind {
	case kindUint8:
		return p.u8()
	case kindInt8:
		return int8(p.u8())
	case kindUint16:
		return p.u16()
	case kindInt16:
		return int16(p.u16())
	case kindUint32:
		return p.u32()
	case kindInt32:
		return int32(p.u32())
	case kindFloat32:
		return math.Float32frombits(p.u32())
	case kindBool:
		return p.bool(key)
	case kindString:
		return p.str("metadata value "+printable(key), MaxStringBytes)
	case kindArray:
		return p.array(key)
	case kindUint64:
		return p.u64()
	case kindInt64:
		return int64(p.u64())
	case kindFloat64:
		return math.Float64frombits(p.u64())
	}
	p.fail("metadata key %q has unknown value type %d", printable(key), kind)
	return nil
}

func (p *parser) bool(key string) bool {
	b := p.u8()
	if b > 1 {
		p.fail("metadata key %q has the boolean value %d", printable(key), b)
	}
	return b == 1
}

func (p *parser) array(key string) any {
	kind, n := p.u32(), p.u64()
	if p.err != nil {
		return nil
	}
	if n > MaxArray {
		p.fail("metadata key %q claims %d elements, at most %d are allowed", printable(key), n, MaxArray)
		return nil
	}
	switch kind {
	case kindUint8:
		return list(p, n, 1, 1, p.u8)
	case kindInt8:
		return list(p, n, 1, 1, func() int8 { return int8(p.u8()) })
	case kindUint16:
		return list(p, n, 2, 2, p.u16)
	case kindInt16:
		return list(p, n, 2, 2, func() int16 { return int16(p.u16()) })
	case kindUint32:
		return list(p, n, 4, 4, p.u32)
	case kindInt32:
		return list(p, n, 4, 4, func() int32 { return int32(p.u32()) })
	case kindFloat32:
		return list(p, n, 4, 4, func() float32 { return math.Float32frombits(p.u32()) })
	case kindBool:
		return list(p, n, 1, 1, func() bool { return p.bool(key) })
	case kindString:
		what := "a string in " + printable(key)
		return list(p, n, 8, 16, func() string { return p.str(what, MaxStringBytes) })
	case kindUint64:
		return list(p, n, 8, 8, p.u64)
	case kindInt64:
		return list(p, n, 8, 8, func() int64 { return int64(p.u64()) })
	case kindFloat64:
		return list(p, n, 8, 8, func() float64 { return math.Float64frombits(p.u64()) })
	case kindArray:
		p.fail("metadata key %q is an array of arrays, which is not supported", printable(key))
	default:
		p.fail("metadata key %q is an array of unknown type %d", printable(key), kind)
	}
	return nil
}

// list reads n elements that take at least fileBytes in the file and memory in a slice, each.
func list[T any](p *parser, n uint64, fileBytes, memory int64, read func() T) []T {
	if !p.take(int64(n)*fileBytes, int64(n)*memory) {
		return nil
	}
	out := make([]T, 0, n)
	for range n {
		v := read()
		if p.err != nil {
			return nil
		}
		out = append(out, v)
	}
	return out
}

// Keys returns the metadata keys in file order (of the first part, when split).
func (f *File) Keys() []string { return slices.Clone(f.keys) }

// String returns the string value of key; false when it is absent or no string.
func (f *File) String(key string) (string, bool) { return get[string](f, key) }

// Bool returns the boolean value of key; false when it is absent or no boolean.
func (f *File) Bool(key string) (value, ok bool) { return get[bool](f, key) }

// Strings returns the string array of key, which the caller must not modify; false when absent or of another type.
func (f *File) Strings(key string) ([]string, bool) { return get[[]string](f, key) }

// Bools returns the boolean array of key, which the caller must not modify; false when absent or of another type.
func (f *File) Bools(key string) ([]bool, bool) { return get[[]bool](f, key) }

func get[T any](f *File, key string) (T, bool) {
	v, ok := f.meta[key].(T)
	return v, ok
}

// Int returns the integer value of key, whatever its width; false when absent, no integer, or above int64.
func (f *File) Int(key string) (int64, bool) {
	switch v := f.meta[key].(type) {
	case uint8:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	}
	return 0, false
}

// Uint returns the integer value of key, whatever its width; false when absent, no integer, or negative.
func (f *File) Uint(key string) (uint64, bool) {
	if v, ok := f.meta[key].(uint64); ok {
		return v, true
	}
	v, ok := f.Int(key)
	if !ok || v < 0 {
		return 0, false
	}
	return uint64(v), true
}

// Float returns the value of key, a float or an integer of any width; false when absent or of another type.
func (f *File) Float(key string) (float64, bool) {
	switch v := f.meta[key].(type) {
	case float32:
		return float64(v), true
	case float64:
		return v, true
	case uint64:
		return float64(v), true
	}
	v, ok := f.Int(key)
	return float64(v), ok
}

// Ints returns an integer array as int32, a fresh copy unless it is stored so; false when it is absent, of another
// type, or holds a value that does not fit.
func (f *File) Ints(key string) ([]int32, bool) {
	switch v := f.meta[key].(type) {
	case []int32:
		return v, true
	case []uint8:
		return ints(v)
	case []int8:
		return ints(v)
	case []uint16:
		return ints(v)
	case []int16:
		return ints(v)
	case []uint32:
		return ints(v)
	case []int64:
		return ints(v)
	case []uint64:
		return ints(v)
	}
	return nil, false
}

func ints[T uint8 | int8 | uint16 | int16 | uint32 | int64 | uint64](in []T) ([]int32, bool) {
	out := make([]int32, len(in))
	for i, v := range in {
		out[i] = int32(v)
		if T(out[i]) != v || (out[i] < 0) != (v < 0) {
			return nil, false
		}
	}
	return out, true
}

// Floats returns a float array as float32, a fresh copy unless it is stored so; false when absent or of another type.
func (f *File) Floats(key string) ([]float32, bool) {
	switch v := f.meta[key].(type) {
	case []float32:
		return v, true
	case []float64:
		out := make([]float32, len(v))
		for i, x := range v {
			out[i] = float32(x)
		}
		return out, true
	}
	return nil, false
}
