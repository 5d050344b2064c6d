package verbs

import "daisy/rdma/verbs/provider"

// A class is one of the two kinds of slots, each with a queue pair of its own,
// because a queue pair's slots must all span equally many frames.
type class int

const (
	small    class = iota // latency: few frames
	bulk                  // bandwidth
	nClasses = 2
)

func (c class) String() string { return [...]string{"small", "bulk"}[c] }

// A shape says how the slots of a class are cut. Both sides of a pair must use
// the same.
type shape struct {
	// SlotBytes is the length of a slot, header included. A multiple of the
	// frame.
	SlotBytes int `json:"slot_bytes"`
	// Window is how many slots with data may be under way or not yet taken. The
	// receiver tells the sender of free slots after half a window at the latest.
	Window int `json:"window"`
}

// shapes are chosen so that a rail stays within the frame budget of a port,
// 512 each way: 2·32 + 2·18 at most for credits and farewell + 8·32 = 356. A bulk
// slot of 128 KiB was the best of 32 to 256 KiB in the published tests of
// another user of Apple's provider; eight of them cover 1 MiB, a hundred
// microseconds of an 80 Gb/s cable.
var shapes = [nClasses]shape{
	small: {SlotBytes: provider.LatencyFrames * provider.FrameBytes, Window: 32},
	bulk:  {SlotBytes: 128 << 10, Window: 8},
}

const (
	// maxSmall is how many small slots a message, or the end of a longer one,
	// may take before a bulk slot is the better choice: as many as 32 KiB
	// need. Posting a frame takes a Mac two to three microseconds, and a bulk
	// slot always travels whole, in about fifteen.
	maxSmall = 5
	// smallBytes is what they carry.
	smallBytes = maxSmall * (provider.LatencyFrames*provider.FrameBytes - headerBytes)
)

// controlSlots is how many small slots of the first rail are kept for frames
// that carry no data. Each lane's receiver sends at most two credit frames
// while the sender does not look (the window's slots, half a window each), and
// there is one farewell and one to spare.
func controlSlots(nRails int) int { return 2*nClasses*nRails + 2 }

// eagerBytes is what always leaves without waiting, once the receiver has taken
// all that came before: half a window of bulk slots.
var eagerBytes = shapes[bulk].Window / 2 * (shapes[bulk].SlotBytes - headerBytes)

// slots is how many slots a lane has each way.
func slots(c class, railIndex, nRails int) int {
	n := shapes[c].Window
	if c == small && railIndex == 0 {
		n += controlSlots(nRails)
	}
	return n
}

// railFrames is how many frames a rail may have outstanding each way.
func railFrames(railIndex, nRails int) int {
	n := 0
	for c, s := range shapes {
		n += slots(class(c), railIndex, nRails) * provider.Frames(s.SlotBytes)
	}
	return n
}

// railBytes is how much registered memory a rail takes.
func railBytes(railIndex, nRails int) int {
	return 2 * railFrames(railIndex, nRails) * provider.FrameBytes
}
