package provider

import "unsafe"

// Slot is a piece of registered memory to send from or receive into. It is what
// libibverbs calls a scatter/gather entry; there is one for each post.
type Slot struct {
	Addr  uintptr // of memory outside Go's heap, which does not move
	Bytes uint32
	LKey  uint32
}

// NewSlot is the slot of mem, which lies in the memory registered as mr.
func NewSlot(mr MR, mem []byte) Slot {
	return Slot{Addr: uintptr(unsafe.Pointer(unsafe.SliceData(mem))), Bytes: uint32(len(mem)), LKey: mr.LKey()}
}

// Frames is how many frames of FrameBytes a message of so many bytes spans. A
// SEND and the RECV that takes it must span equally many.
func Frames(nBytes int) int {
	return max(1, (nBytes+FrameBytes-1)/FrameBytes)
}
