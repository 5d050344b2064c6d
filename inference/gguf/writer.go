package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// KV is one metadata pair to write. Value is a bool, a string, an integer or float of stated size (uint8 … int64,
// float32, float64), or a slice of one of these.
type KV struct {
	Key   string
	Value any
}

// TensorData is one tensor to write. Data holds exactly the bytes that Shape and Type ask for.
type TensorData struct {
	Name  string
	Shape []int64 // ggml order, ne0 first
	Type  Type
	Data  []byte
}

// Write writes a GGUF version 3 file: metadata in the order given, tensors in the order given, aligned as
// general.alignment among kv says (a uint32), by 32 bytes without it. It does not close w, and reports unsupported
// values, wrong data sizes, and errors of w.
func Write(w io.Writer, kv []KV, tensors []TensorData) error {
	list := make([]Tensor, len(tensors))
	for i, t := range tensors {
		list[i] = Tensor{Name: t.Name, Shape: t.Shape, Type: t.Type}
		if n, err := list[i].check(); err == nil && int64(len(t.Data)) != n {
			return fmt.Errorf("gguf: tensor %q has %d bytes of data, needs %d", t.Name, len(t.Data), n)
		}
	}
	e := encoder{w: bufio.NewWriterSize(w, 256<<10)}
	align, err := e.header(kv, list)
	if err != nil {
		return err
	}
	for _, t := range tensors {
		e.raw(t.Data)
		e.pad(align)
	}
	return e.flush()
}

// WriteHeader writes what Write would, without the tensors' data: only their names, shapes and types count. OpenHeader
// reads it.
func WriteHeader(w io.Writer, kv []KV, tensors []Tensor) error {
	e := encoder{w: bufio.NewWriterSize(w, 256<<10)}
	if _, err := e.header(kv, tensors); err != nil {
		return err
	}
	return e.flush()
}

// header writes all up to the tensor data and returns the alignment.
func (e *encoder) header(kv []KV, tensors []Tensor) (align int64, err error) {
	align = DefaultAlignment
	for _, p := range kv {
		if p.Key != "general.alignment" {
			continue
		}
		a, ok := p.Value.(uint32)
		if !ok || a == 0 || a&(a-1) != 0 || a > MaxAlignment {
			return 0, fmt.Errorf("gguf: alignment %v is no uint32 power of two", p.Value)
		}
		align = int64(a)
	}
	e.raw([]byte("GGUF"))
	e.u32(3)
	e.u64(uint64(len(tensors)))
	e.u64(uint64(len(kv)))
	for _, p := range kv {
		e.str(p.Key)
		if err := e.value(p.Value); err != nil {
			return 0, fmt.Errorf("gguf: key %q: %w", p.Key, err)
		}
	}
	var offset int64
	for _, t := range tensors {
		n, err := t.check()
		if err != nil {
			return 0, fmt.Errorf("gguf: %w", err)
		}
		e.str(t.Name)
		e.u32(uint32(len(t.Shape)))
		for _, d := range t.Shape {
			e.u64(uint64(d))
		}
		e.u32(uint32(t.Type))
		e.u64(uint64(offset))
		offset += (n + align - 1) / align * align
	}
	e.pad(align)
	return align, nil
}

// encoder keeps the first write error.
type encoder struct {
	w   *bufio.Writer
	n   int64
	err error
	buf [8]byte
}

func (e *encoder) raw(b []byte) {
	if e.err == nil {
		_, e.err = e.w.Write(b)
		e.n += int64(len(b))
	}
}

func (e *encoder) flush() error {
	if e.err != nil {
		return e.err
	}
	return e.w.Flush()
}

func (e *encoder) pad(align int64) {
	for e.err == nil && e.n%align != 0 {
		e.raw([]byte{0})
	}
}

func (e *encoder) u8(v uint8) { e.raw([]byte{v}) }

func (e *encoder) u16(v uint16) {
	binary.LittleEndian.PutUint16(e.buf[:], v)
	e.raw(e.buf[:2])
}

func (e *encoder) u32(v uint32) {
	binary.LittleEndian.PutUint32(e.buf[:], v)
	e.raw(e.buf[:4])
}

func (e *encoder) u64(v uint64) {
	binary.LittleEndian.PutUint64(e.buf[:], v)
	e.raw(e.buf[:8])
}

func (e *encoder) str(s string) {
	e.u64(uint64(len(s)))
	e.raw([]byte(s))
}

func (e *encoder) bool(v bool) {
	if v {
		e.u8(1)
	} else {
		e.u8(0)
	}
}

// value writes a value with its type in front.
func (e *encoder) value(v any) error {
	switch v := v.(type) {
	case []uint8:
		writeList(e, kindUint8, v, e.u8)
	case []int8:
		writeList(e, kindInt8, v, func(x int8) { e.u8(uint8(x)) })
	case []uint16:
		writeList(e, kindUint16, v, e.u16)
	case []int16:
		writeList(e, kindInt16, v, func(x int16) { e.u16(uint16(x)) })
	case []uint32:
		writeList(e, kindUint32, v, e.u32)
	case []int32:
		writeList(e, kindInt32, v, func(x int32) { e.u32(uint32(x)) })
	case []float32:
		writeList(e, kindFloat32, v, func(x float32) { e.u32(math.Float32bits(x)) })
	case []bool:
		writeList(e, kindBool, v, e.bool)
	case []string:
		writeList(e, kindString, v, e.str)
	case []uint64:
		writeList(e, kindUint64, v, e.u64)
	case []int64:
		writeList(e, kindInt64, v, func(x int64) { e.u64(uint64(x)) })
	case []float64:
		writeList(e, kindFloat64, v, func(x float64) { e.u64(math.Float64bits(x)) })
	default:
		return e.scalar(v)
	}
	return nil
}

func (e *encoder) scalar(v any) error {
	switch v := v.(type) {
	case uint8:
		e.u32(kindUint8)
		e.u8(v)
	case int8:
		e.u32(kindInt8)
		e.u8(uint8(v))
	case uint16:
		e.u32(kindUint16)
		e.u16(v)
	case int16:
		e.u32(kindInt16)
		e.u16(uint16(v))
	case uint32:
		e.u32(kindUint32)
		e.u32(v)
	case int32:
		e.u32(kindInt32)
		e.u32(uint32(v))
	case float32:
		e.u32(kindFloat32)
		e.u32(math.Float32bits(v))
	case bool:
		e.u32(kindBool)
		e.bool(v)
	case string:
		e.u32(kindString)
		e.str(v)
	case uint64:
		e.u32(kindUint64)
		e.u64(v)
	case int64:
		e.u32(kindInt64)
		e.u64(uint64(v))
	case float64:
		e.u32(kindFloat64)
		e.u64(math.Float64bits(v))
	default:
		return fmt.Errorf("cannot write a %T", v)
	}
	return nil
}

func writeList[T any](e *encoder, kind uint32, list []T, write func(T)) {
	e.u32(kindArray)
	e.u32(kind)
	e.u64(uint64(len(list)))
	for _, v := range list {
		write(v)
	}
}
