package verbs

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"daisy/rdma"
	"daisy/rdma/verbs/provider"
)

// version is that of the messages here and of the slots. Ranks of different
// versions leave their data to the base.
const version = 1

// opHandshake tags the messages of the handshake on the base.
const opHandshake rdma.Op = 64

// Every message of the handshake has this length: four bytes, little-endian,
// that count the JSON after them, and zeros up to the end.
const messageBytes = 16 << 10

// A hello goes to all ranks, also from ranks that have no devices.
type hello struct {
	Version  int              `json:"version"`
	Epoch    uint64           `json:"epoch"`
	Checksum bool             `json:"checksum,omitempty"`
	Shapes   [nClasses]shape  `json:"shapes"`
	Ports    []portInfo       `json:"ports,omitempty"`
	Cables   map[int][]string `json:"cables,omitempty"`
	// Reason is why ports are missing.
	Reason string `json:"reason,omitempty"`
}

// An offer has the queue pairs of one side of a pair, in the order of the
// plan's rails.
type offer struct {
	Reason string                        `json:"reason,omitempty"` // why there are none
	Rails  [][nClasses]provider.Endpoint `json:"rails,omitempty"`
}

// A verdict ends a step: the pair goes on if both sides give no reason.
type verdict struct {
	Reason string `json:"reason,omitempty"`
	// Latency and Bandwidth are the probe's.
	Latency   time.Duration `json:"latency,omitempty"`
	Bandwidth float64       `json:"bandwidth,omitempty"`
}

// maxReason is how much of a reason travels.
const maxReason = 1 << 10

func reason(err error) string {
	if err == nil {
		return ""
	}
	s := err.Error()
	return s[:min(len(s), maxReason)]
}

// encode lays a message out.
func encode(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(body) > messageBytes-4 {
		return nil, fmt.Errorf("a handshake message of %d bytes is too long", len(body))
	}
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, messageBytes), uint32(len(body)))
	return append(b, body...)[:messageBytes], nil
}

// decode reads a message from a peer.
func decode(b []byte, v any) error {
	if len(b) < 4 {
		return errors.New("the handshake message is cut off")
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return errors.New("the handshake message has a wrong length")
	}
	if err := json.Unmarshal(b[4:4+n], v); err != nil {
		return fmt.Errorf("the handshake message makes no sense: %w", err)
	}
	return nil
}

// check looks at a peer's hello beside ours.
func (h hello) check(theirs hello) error {
	switch {
	case theirs.Version != h.Version:
		return fmt.Errorf("it speaks version %d of the RDMA protocol, this rank version %d", theirs.Version, h.Version)
	case theirs.Epoch != h.Epoch:
		return fmt.Errorf("it is in epoch %d, this rank in epoch %d", theirs.Epoch, h.Epoch)
	case theirs.Shapes != h.Shapes:
		return fmt.Errorf("it uses other slots: %v, this rank %v", theirs.Shapes, h.Shapes)
	case len(theirs.Ports) > maxPorts:
		return fmt.Errorf("it has %d ports; %d at the most are allowed", len(theirs.Ports), maxPorts)
	}
	for _, p := range theirs.Ports {
		if !p.Address.Is4() || p.Bits < 0 || p.Bits > 32 || len(p.Device) > 64 {
			return fmt.Errorf("its port %.64q makes no sense", p.Device)
		}
	}
	return nil
}

// rounds are the steps of the handshake on the base.
type rounds struct {
	base rdma.Transport
	n    uint32
	skip []bool // ranks that do not take part
}

// exchange is one round: everyone sends a message to everyone, then receives
// one from everyone. It fails only when the base has ended. out gives the
// message for a peer; take gets the peer's, or an error when it makes no sense.
func exchange[T any](r *rounds, out func(peer int) T, take func(peer int, in T, err error)) error {
	r.n++
	tag := rdma.Tag{Op: opHandshake, Seq: r.n, Bytes: messageBytes}
	for p := range r.base.WorldSize() {
		if p == r.base.Rank() || r.skip[p] {
			continue
		}
		b, err := encode(out(p))
		if err != nil {
			r.base.Abort(fmt.Errorf("RDMA handshake with rank %d: %w", p, err))
			return r.base.Err()
		}
		if err := r.base.Send(p, tag, b); err != nil {
			return err
		}
	}
	b := make([]byte, messageBytes)
	for p := range r.base.WorldSize() {
		if p == r.base.Rank() || r.skip[p] {
			continue
		}
		if err := r.base.Recv(p, tag, b); err != nil {
			return err
		}
		var in T
		err := decode(b, &in)
		take(p, in, err)
	}
	return nil
}
