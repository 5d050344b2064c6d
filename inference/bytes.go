package inference

import "unsafe"

// bytesOf shows a slice of numbers as bytes, in the machine's order: little
// endian on every machine that Daisy runs on.
func bytesOf[T any](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}
