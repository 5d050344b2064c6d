package node

import (
	"errors"
	"slices"
	"time"

	"daisy/node/control"
)

// consentTime is how long a leader may take to go on with the rest of a group,
// without its members being asked again.
const consentTime = time.Minute

// consent is what this node's owner agreed to last: a leader, a model, and the
// members who see the prompts. It outlives the group when that ended over somebody
// else, so that the leader can go on with the rest.
type consent struct {
	leader  ID
	model   string // fingerprint
	members []ID
	until   time.Time
}

// keepConsent notes that a group ended which this node had agreed to. Consent ends
// when this node or the leader ended it, or is gone.
func (n *Node) keepConsent(invite *control.Invite, cause error) {
	var about *NodeError
	var kept *consent
	if errors.As(cause, &about) && about.ID != invite.Members[0].ID && about.ID != n.identity.ID() {
		kept = &consent{invite.Members[0].ID, invite.Model.Fingerprint, ids(invite.Members), time.Now().Add(consentTime)}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.consented = kept
}

// hasConsent says whether the invitation is to go on with what was agreed to: the
// same leader and model, and nobody new. It holds once.
func (n *Node) hasConsent(invite *control.Invite) bool {
	n.mu.Lock()
	kept := n.consented
	n.consented = nil
	n.mu.Unlock()
	return kept != nil && time.Now().Before(kept.until) && invite.Members[0].ID == kept.leader &&
		invite.Model.Fingerprint == kept.model && len(invite.Members) < len(kept.members) &&
		!slices.ContainsFunc(invite.Members, func(m control.Member) bool { return !slices.Contains(kept.members, m.ID) })
}
