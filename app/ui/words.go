//go:build !headless

package ui

import (
	"errors"
	"fmt"
	"time"

	"daisy/app/history"
	"daisy/app/session"
	"daisy/inference"
	"daisy/node"
	"daisy/node/control"
	"daisy/node/pairing"
)

// errorWords says an error in the person's language where it is a known one.
func errorWords(err error) string {
	for _, known := range []struct {
		err error
		key string
	}{
		{session.ErrNoModel, "error.no_model"},
		{session.ErrBusy, "error.busy"},
		{inference.ErrContextFull, "error.context_full"},
		{history.ErrNotFound, "error.not_found"},
		{pairing.ErrRefused, "pair.error_refused"},
		{pairing.ErrPeerRefused, "pair.error_peer_refused"},
		{pairing.ErrExpired, "pair.error_expired"},
		{pairing.ErrMismatch, "pair.error_mismatch"},
		{pairing.ErrReflected, "pair.error_mismatch"},
		{pairing.ErrBusy, "pair.error_busy"},
		{pairing.ErrPeerBusy, "pair.error_peer_busy"},
		{pairing.ErrPeerLocked, "pair.error_peer_locked"},
		{pairing.ErrBroken, "pair.error_broken"},
		{pairing.ErrClosed, "pair.error_broken"},
		{pairing.ErrVersion, "pair.error_version"},
		{control.ErrNoPairing, "pair.error_version"},
	} {
		if errors.Is(err, known.err) {
			return tr(known.key)
		}
	}
	var locked *pairing.LockedError
	if errors.As(err, &locked) {
		return tr("pair.error_locked", args{"Time": locked.Until.Local().Format("15:04:05")})
	}
	var of *node.NodeError
	if errors.As(err, &of) {
		return nodeErrorWords(of)
	}
	return err.Error()
}

// nodeErrorWords says what another Mac did, and why where it said so.
func nodeErrorWords(e *node.NodeError) string {
	words := e.Error()
	for _, known := range []struct {
		err error
		key string
	}{
		{node.ErrLost, "error.node_lost"},
		{node.ErrLeft, "error.node_left"},
		{node.ErrRefused, "error.node_refused"},
		{node.ErrEnded, "error.node_ended"},
		{node.ErrFailed, "error.node_failed"},
		{node.ErrNotPaired, "error.node_unpaired"},
	} {
		if e.What == known.err {
			words = tr(known.key, args{"Name": e.Name})
			if e.Reason != nil {
				words += " (" + e.Reason.Error() + ")"
			}
		}
	}
	return words
}

// peerWords is where a peer stands: its state, and why where that is not plain.
func peerWords(p session.Peer) string {
	states := map[string]string{
		string(node.PeerFound):        "peer.found",
		string(node.PeerUnpaired):     "peer.unpaired",
		string(node.PeerRefused):      "peer.refused",
		string(node.PeerReady):        "peer.ready",
		string(node.PeerMember):       "peer.member",
		string(node.PeerBusy):         "peer.busy",
		string(node.PeerUnreachable):  "peer.unreachable",
		string(node.PeerIncompatible): "peer.incompatible",
	}
	key, ok := states[p.State]
	switch {
	case !ok:
		return p.Reason
	case p.Reason == "" || key == "peer.busy" || key == "peer.refused":
		return tr(key)
	default:
		return tr(key) + ": " + p.Reason
	}
}

// pairable says whether a Mac has to be paired before it can be invited.
func pairable(p session.Peer) bool {
	return p.State == string(node.PeerUnpaired) || p.State == string(node.PeerRefused)
}

// byteWords gives bytes as people read them on a Mac: powers of ten.
func byteWords(n int64) string {
	v, units := float64(n), []string{"B", "KB", "MB", "GB", "TB"}
	i := 0
	for v >= 999.5 && i < len(units)-1 {
		v /= 1000
		i++
	}
	if i == 0 || v >= 99.5 {
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

// dayWords is the time of today, and the date of other days.
func dayWords(t, now time.Time) string {
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format(time.DateOnly)
}

// statWords is the line below an answer.
func statWords(m history.Message) string {
	s := ""
	switch m.Status {
	case history.StatusStopped:
		s = tr("answer.stopped")
	case history.StatusInterrupted:
		s = tr("answer.interrupted")
	}
	add := func(words string) {
		if s != "" {
			s += " · "
		}
		s += words
	}
	if m.Stats.DecodeTokensPerSecond > 0 {
		add(tr("answer.stats", args{
			"Speed":  fmt.Sprintf("%.1f", m.Stats.DecodeTokensPerSecond),
			"Tokens": m.Stats.GeneratedTokens,
		}))
	}
	if m.Stats.Stop == string(inference.StopFull) {
		add(tr("answer.full"))
	}
	if m.Stats.DroppedMessages > 0 {
		add(tr("answer.dropped"))
	}
	return s
}
