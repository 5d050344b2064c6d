package control

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"

	"daisy/node/identity"
)

// rosterPurpose is what the leader's signature is for; see identity.Sign.
const rosterPurpose = "daisy group members 1"

// roster is what the leader signs: the epoch and the ID, which is the hash of
// the key, of each rank. Integers are big-endian.
//
//	 0  uint64   epoch
//	 8  uint32   number of members
//	12  52 bytes ID of rank 0, of rank 1, …
func roster(epoch uint64, members []Member) []byte {
	b := binary.BigEndian.AppendUint64(nil, epoch)
	b = binary.BigEndian.AppendUint32(b, uint32(len(members)))
	for _, m := range members {
		b = append(b, m.ID...)
	}
	return b
}

// Sign lets the leader vouch for the members' keys, for this epoch alone.
func (i *Invite) Sign(leader *identity.Identity) (err error) {
	i.Signature, err = leader.Sign(rosterPurpose, roster(i.Epoch, i.Members))
	return err
}

// Verify checks the leader's word for the members' keys; leader is the key that
// the other end of the stream has proved to hold.
func (i *Invite) Verify(leader ed25519.PublicKey) error {
	switch {
	case len(leader) != ed25519.PublicKeySize || len(i.Members) == 0 || i.Members[0].ID != identity.IDOf(leader):
		return errors.New("the invitation is another leader's")
	case len(i.Signature) == 0:
		return errors.New("its leader did not sign the list of members; install the same Daisy on both")
	}
	if err := identity.Verify(leader, rosterPurpose, roster(i.Epoch, i.Members), i.Signature); err != nil {
		return fmt.Errorf("the leader's signature under the list of members is wrong: %w", err)
	}
	return nil
}
