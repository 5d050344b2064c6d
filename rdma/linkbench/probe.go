package linkbench

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"daisy/rdma"
)

// What a probe sends: probePings round trips of 8 bytes, then up to maxBlocks
// blocks, as many as probeTime is enough for.
const (
	probePings = 40
	pingTime   = 30 * time.Millisecond
	blockBytes = 64 << 10
	maxBlocks  = 512
	probeTime  = 30 * time.Millisecond
)

// Pair measures the link between this rank and peer, which calls it too, with
// this rank. It takes less than 100 ms where a round trip takes less than a
// millisecond and 64 KiB less than ten; elsewhere five round trips and four
// blocks at the least. Both sides get the same: half a round trip, the median,
// and bytes per second from the lower to the higher rank.
//
// It uses the pair's Send and Recv, which nothing else may use meanwhile. An
// error has ended the group, unless it says that there is no such peer.
func Pair(ctx context.Context, g *rdma.Group, peer int) (latency time.Duration, bandwidth float64, err error) {
	p := &probe{ctx: ctx, g: g, peer: peer}
	if g.Rank() < peer {
		err = p.drive()
	} else {
		err = p.answer()
	}
	if err != nil {
		if peer >= 0 && peer < g.WorldSize() && peer != g.Rank() {
			g.Abort(err) // a context that ends between two operations does not do it
		}
		return 0, 0, fmt.Errorf("probing rank %d: %w", peer, err)
	}
	return p.latency, p.bandwidth, nil
}

type probe struct {
	ctx       context.Context
	g         *rdma.Group
	peer      int
	latency   time.Duration
	bandwidth float64
	block     []byte
}

// drive decides how much is measured. A ping carries 1 while more follow; the
// last carries 2 plus the number of blocks, the result two words.
func (p *probe) drive() error {
	var took []time.Duration
	began := time.Now()
	for i := range probePings {
		start := time.Now()
		if err := p.send(1); err != nil {
			return err
		}
		if _, err := p.recv(); err != nil {
			return err
		}
		took = append(took, time.Since(start)/2)
		if i >= 5 && time.Since(began) > pingTime {
			break
		}
	}
	slices.Sort(took)
	p.latency = took[len(took)/2]
	first, err := p.stream(4)
	if err != nil {
		return err
	}
	p.bandwidth = first
	if n := int(first * probeTime.Seconds() / blockBytes); n > 4 {
		if p.bandwidth, err = p.stream(min(n, maxBlocks)); err != nil {
			return err
		}
	}
	if err := p.send(2); err != nil {
		return err
	}
	if err := p.send(uint64(p.latency)); err != nil {
		return err
	}
	return p.send(uint64(p.bandwidth))
}

// stream sends blocks and waits for the answer to the last. The time of the
// answer itself is taken off.
func (p *probe) stream(blocks int) (float64, error) {
	start := time.Now()
	if err := p.send(2 + uint64(blocks)); err != nil {
		return 0, err
	}
	p.block = make([]byte, blockBytes)
	for range blocks {
		if err := p.g.Send(p.ctx, p.peer, p.block); err != nil {
			return 0, err
		}
	}
	if _, err := p.recv(); err != nil {
		return 0, err
	}
	t := max(time.Since(start)-p.latency, time.Microsecond)
	return float64(blocks*blockBytes) / t.Seconds(), nil
}

func (p *probe) answer() error {
	for {
		v, err := p.recv()
		switch {
		case err != nil:
			return err
		case v == 1:
		case v == 2:
			latency, err := p.recv()
			if err != nil {
				return err
			}
			bandwidth, err := p.recv()
			p.latency = time.Duration(min(latency, uint64(time.Hour)))
			p.bandwidth = float64(bandwidth)
			return err
		case v <= 2+maxBlocks:
			p.block = make([]byte, blockBytes)
			for range v - 2 {
				if err := p.g.Recv(p.ctx, p.peer, p.block); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("rank %d sent %d, which is no part of a probe", p.peer, v)
		}
		if err := p.send(0); err != nil {
			return err
		}
	}
}

func (p *probe) send(v uint64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return p.g.Send(p.ctx, p.peer, b[:])
}

func (p *probe) recv() (uint64, error) {
	var b [8]byte
	err := p.g.Recv(p.ctx, p.peer, b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}
