package provider

import "time"

// What the public sources about Apple's provider leave open or disagree on, one
// named choice each. A Mac settles them; until then these values are the ones
// that most of the known users have working, or else the most cautious. Nothing
// else in this program decides these questions.
const (
	// FrameBytes is the unit that Apple's provider counts queues in. Settled:
	// Apple's technical note TN3205.
	FrameBytes = 4096

	// LatencyFrames is how many frames a slot for short messages spans. Two let
	// a payload of 4 KiB travel in one post with its header: over the fake
	// library in C such an exchange takes 1.5 times what the bare calls and
	// copies take, with slots of one frame 2.1 times, because of the second
	// post. But a message below 4 KiB then takes two frames. Posting is said to
	// take a Mac two to three microseconds a frame; whether that is for the post
	// or for the frame only a Mac can tell.
	LatencyFrames = 2

	// MaxMessageBytes is Apple's longest message, 4095 frames. Settled: TN3205.
	MaxMessageBytes = 4095 * FrameBytes

	// MRAccess is what memory is registered with, and MRAccessFallback what is
	// tried if that is refused. TN3205 says local write alone; two users found
	// it rejected, a third has it working, and the library that most people run
	// registers with all three. Linux takes either. (Question 1.)
	MRAccess         = AccessLocalWrite | AccessRemoteWrite | AccessRemoteRead
	MRAccessFallback = AccessLocalWrite

	// QPAccess is what queue pairs allow on their way to INIT: TN3205 says
	// nothing (0), all known users say 7. Nothing is ever read or written
	// remotely. (Part of question 1.)
	QPAccess = MRAccess

	// PostRecvAfterRTS: receives are posted after ready-to-send, and the peer
	// is told, before its first SEND, that they are. One user found earlier
	// posts rejected, another posts in INIT. Waiting works in both worlds.
	// (Question 2.)
	PostRecvAfterRTS = true

	// FrameBudget is how many frames may be outstanding in each direction of a
	// port, all its queue pairs together. 1008 were counted before a post
	// failed with -12, though queue pairs are granted 4095; it is not known
	// whether the limit is a port's or a queue pair's. Half of it leaves room
	// for what is being torn down. (Question 3.)
	FrameBudget = 512

	// QueueFrames is the depth asked of a queue pair each way, and CQDepth that
	// of its completion queue: TN3205's are 4095 and 4096; one user counts
	// completions in frames, for which this CQDepth is enough, for both
	// directions of a whole port. (Question 3.)
	QueueFrames = FrameBudget
	CQDepth     = 2*FrameBudget + 1

	// UseCompletionChannel: nobody is known to use events on Apple's provider,
	// so completions are polled. (Question 4.)
	UseCompletionChannel = false

	// KeepContext: an opened device, its protection domain and its memory live
	// as long as the process, and only queue pairs come and go. In one
	// measurement leaked domains came back when their process ended, in others
	// only a reboot brought them back. (Question 5.)
	KeepContext = true

	// RequireIPv4GID: only an IPv4-mapped GID is used. One report has a
	// link-local one working. GIDScan is how many entries are looked at. (Question 6.)
	RequireIPv4GID = true
	GIDScan        = 16

	// ApplePathMTU is the MTU towards ready-to-receive: TN3205 says 4096, the
	// library that most people run 1024, a third user the active MTU. It must
	// not exceed the port's active one. (Question 7.)
	ApplePathMTU = MTU1024

	// DestroyThroughErr: a queue pair is destroyed as it is, after the ranks
	// agreed that nothing is outstanding, not moved to ERR first. One user
	// found that all unmaps fail after ERR, another drains through it. The
	// order is: queue pair, memory, completion queue, domain, context.
	// (Question 8.)
	DestroyThroughErr = false

	// DeviceAttrBytes is how much room ibv_query_device gets. Apple's layout
	// is not verified beyond the header's being a port of Linux's (232 bytes
	// there), so it is read for display only and nothing is decided by it.
	// (Question 9.)
	DeviceAttrBytes = 512

	// IdleTraffic is how often an idle queue pair should carry something, both
	// ways: one source found queue pairs unreliable after 23 idle minutes.
	// (Question 10.)
	IdleTraffic = 5 * time.Minute

	// DestroyHold is how long to wait between the agreement that all is
	// delivered and destroying the queue pair, since completions precede
	// delivery; one user holds a second.
	DestroyHold = 100 * time.Millisecond

	// RTRDeadline is how long a step to ready-to-receive may take before the
	// link is given up; it has been seen to block for a minute.
	RTRDeadline = 75 * time.Second

	// PSN is the first packet sequence number both ways. (RQPSN must be the
	// peer's SQPSN.) Settled: TN3205.
	PSN = 7

	// MaxSlabBytes is the largest memory that is registered in one piece: 1 GiB
	// is known to work though 0xfa0000 is advertised.
	MaxSlabBytes = 1 << 30

	// PollBatch is how many completions one Poll takes at most.
	PollBatch = 32
)

// Apple's limits for each device, whoever uses it. Advertised are 11, 11, 11
// and 100. Whether the front and back ports of one Mac differ (question 11) is
// not known: no port is treated differently.
const (
	AppleMaxQP = 10
	AppleMaxPD = 11
	AppleMaxCQ = 11
	AppleMaxMR = 100
)
