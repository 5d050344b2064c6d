package mem

import (
	"sync"
	"sync/atomic"

	"daisy/rdma"
)

// queueLength is how many messages of a pair may be under way: one of the
// collective that the receiver is in, one of the next, and as many again so that
// a broadcasting rank can run ahead a little.
const queueLength = 4

// A pipe is one direction of one pair: a queue with one sender and one receiver
// at a time. As long as neither has to wait for the other it costs two atomic
// counters and no channel.
type pipe struct {
	sendMu sync.Mutex // held by the sender
	recvMu sync.Mutex // held by the receiver

	slots  [queueLength]message // those from nTaken to nPut-1 belong to the receiver, the others to the sender
	nPut   atomic.Uint32        // messages put so far; wraps around
	nTaken atomic.Uint32        // messages taken so far
	posted signal               // there is a message
	taken  signal               // a message was taken

	copyMu sync.Mutex // held while the receiver copies a long message; guards revoked
	// revoked says that the sender of a long message has gone and its memory
	// must not be read any more.
	revoked bool

	left      chan struct{}
	leaveOnce sync.Once
}

type message struct {
	tag    rdma.Tag
	nBytes int
	buffer []byte // holds a short one
	long   []byte // the sender's own memory
}

func newPipe() *pipe {
	return &pipe{left: make(chan struct{}), posted: newSignal(), taken: newSignal()}
}

// room is how many messages the sender may put.
func (p *pipe) room() int { return queueLength - int(p.nPut.Load()-p.nTaken.Load()) }

// waiting says whether there is a message for the receiver.
func (p *pipe) waiting() bool { return p.nPut.Load() != p.nTaken.Load() }

// put adds a message; there is room.
func (p *pipe) put(tag rdma.Tag, b []byte) {
	n := p.nPut.Load()
	m := &p.slots[n%queueLength]
	m.tag, m.nBytes = tag, len(b)
	if len(b) <= eagerLimit {
		m.buffer = append(m.buffer[:0], b...)
	} else {
		m.long = b
	}
	p.nPut.Store(n + 1)
	p.posted.send()
}

// first is the oldest message; there is one. It lasts until drop.
func (p *pipe) first() *message { return &p.slots[p.nTaken.Load()%queueLength] }

// drop gives the slot of the first message back.
func (p *pipe) drop() {
	n := p.nTaken.Load()
	p.slots[n%queueLength].long = nil
	p.nTaken.Store(n + 1)
	p.taken.send()
}

func (p *pipe) leave() { p.leaveOnce.Do(func() { close(p.left) }) }

// A signal wakes one waiter. It waits like this, and may be woken for nothing:
//
//	for !condition() {
//		if s.prepare(); !condition() {
//			<-s.c
//		}
//	}
//
// Whoever makes the condition true calls send afterwards.
type signal struct {
	asleep atomic.Bool
	c      chan struct{}
}

func newSignal() signal { return signal{c: make(chan struct{}, 1)} }

func (s *signal) prepare() { s.asleep.Store(true) }

func (s *signal) send() {
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		select {
		case s.c <- struct{}{}:
		default: // it has not yet noticed the last one
		}
	}
}
