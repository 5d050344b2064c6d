package plan

import (
	"errors"
	"fmt"
)

// Reason is a sentence for people: its code and arguments for who translates it,
// and itself in English.
type Reason struct {
	Code string         `json:"code"`
	Args map[string]any `json:"args,omitempty"` // strings and numbers, in SI units
	Text string         `json:"text"`
}

func (r Reason) String() string { return r.Text }

// The codes of refusals.
const (
	CodeNoRoom       = "no_room"       // node, needed, free
	CodeNoRoomShared = "no_room_group" // nodes, needed, free
	CodeCut          = "cut"           // what, count, unit, ranks
	CodeFewLayers    = "few_layers"    // layers, stages
	CodeNoLink       = "no_link"       // node, other
	CodeLeader       = "leader"        // node
)

// The codes of what speaks for a choice.
const (
	CodeOnlyNode   = "only_node"   // node
	CodeSoloFaster = "solo_faster" // node, network, saved
	CodeSlowOthers = "slow_others" // node: too slow to help
	CodeNeedsRoom  = "needs_room"  // node, needed, free
	CodeFaster     = "faster"      // nodes, decode, alone, node
	CodeKind       = "kind"        // kind, decode, other, other_decode
	CodeLeftOut    = "left_out"    // node, with, without
	CodeLeftOutTTF = "left_out_ttf"
	CodeLittleGain = "little_gain" // node, with, without
	CodeNoUse      = "no_use"      // node, why
)

// gb writes bytes for people.
func gb(bytes float64) string { return fmt.Sprintf("%.1f GB", bytes/1e9) }

// tps writes tokens per second.
func tps(x float64) string {
	if x >= 20 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

func ms(seconds float64) string { return fmt.Sprintf("%.1f ms", seconds*1e3) }

func noRoom(n Node, need float64) *Reason {
	return &Reason{CodeNoRoom, map[string]any{"node": n.Name, "needed": need, "free": n.Memory},
		fmt.Sprintf("does not fit: %s needed, %s free on %s", gb(need), gb(float64(n.Memory)), n.Name)}
}

func noRoomTogether(n int, need, free float64) *Reason {
	return &Reason{CodeNoRoomShared, map[string]any{"nodes": n, "needed": need, "free": free},
		fmt.Sprintf("does not fit: %s needed, %s free on %d Macs together", gb(need), gb(free), n)}
}

func cannotCut(err error) *Reason {
	var cut *CutError
	if !errors.As(err, &cut) {
		return &Reason{CodeCut, nil, err.Error()}
	}
	why := fmt.Sprintf("the model's %d %s cannot be shared by %d Macs", cut.N, cut.What, cut.Ranks)
	if cut.Unit > 1 {
		why += fmt.Sprintf(": its quantisation keeps %d together", cut.Unit)
		if cut.Group > 1 {
			why += fmt.Sprintf(", and %d share a KV head", cut.Group)
		}
	}
	return &Reason{CodeCut, map[string]any{"what": cut.What, "count": cut.N, "unit": cut.Unit, "group": cut.Group, "ranks": cut.Ranks}, why}
}

func fewLayers(layers, stages int) *Reason {
	return &Reason{CodeFewLayers, map[string]any{"layers": layers, "stages": stages},
		fmt.Sprintf("%d layers are too few for %d stages", layers, stages)}
}

func noLink(a, b Node) *Reason {
	return &Reason{CodeNoLink, map[string]any{"node": a.Name, "other": b.Name},
		fmt.Sprintf("%s and %s have no connection", a.Name, b.Name)}
}

func notLeading(leader Node) *Reason {
	return &Reason{CodeLeader, map[string]any{"node": leader.Name},
		fmt.Sprintf("questions arrive at %s, which has to take part", leader.Name)}
}
