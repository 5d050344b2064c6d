// Package gguf reads and writes GGUF model files, versions 2 and 3, little endian.
//
// The engine's loader, the planner and the tokenizer call it. Opening a file reads and checks its header only; tensor
// data is read on demand, so a 400 GB file opens in the time its vocabulary takes. A model split into parts
// (name-00001-of-00003.gguf) opens through its first part and looks like one file.
//
// Everything a header says is checked before memory is taken for it: counts, lengths, shapes and offsets. The limits
// are the constants below. A malformed file gives one error of one line that starts with the file's path; it never
// panics, and never allocates more than MaxHeaderMemory.
//
// A File is immutable after Open and safe for concurrent use, except that Close must come last.
package gguf

// Limits on what a header may ask for. Each is far above what published models use.
const (
	// MaxHeaderMemory bounds the memory taken for the metadata and tensor list of one file (one part, when split).
	MaxHeaderMemory = 256 << 20
	// MaxKeys bounds the number of metadata keys.
	MaxKeys = 1 << 16
	// MaxTensors bounds the number of tensors in one part.
	MaxTensors = 1 << 17
	// MaxKeyBytes bounds a metadata key's length, as the format does.
	MaxKeyBytes = 1<<16 - 1
	// MaxNameBytes bounds a tensor name's length.
	MaxNameBytes = 256
	// MaxStringBytes bounds one string value.
	MaxStringBytes = 64 << 20
	// MaxArray bounds the elements of one array value.
	MaxArray = 1 << 23
	// MaxDims is the most dimensions a tensor can have.
	MaxDims = 4
	// MaxAlignment bounds general.alignment.
	MaxAlignment = 1 << 20
	// MaxParts bounds the parts of a split model.
	MaxParts = 4096

	// DefaultAlignment holds where general.alignment is absent.
	DefaultAlignment = 32
)

// Metadata value types as they stand in the file.
const (
	kindUint8 uint32 = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
)
