package trust

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"daisy/node/discovery"
	"daisy/node/identity"
)

// Consent is what a paired leader's invitations meet.
type Consent string

// The policies.
const (
	Ask    Consent = "ask"    // the owner is asked each time
	Always Consent = "always" // accepted without asking, from this leader
	Never  Consent = "never"  // refused without asking
)

// MaxAddrs is how many addresses an Entry may have.
const MaxAddrs = 4

// ErrConsent: the word is none of the policies.
var ErrConsent = errors.New("consent is ask, always or never")

// ParseConsent checks a policy from outside.
func ParseConsent(text string) (Consent, error) {
	switch c := Consent(text); c {
	case Ask, Always, Never:
		return c, nil
	}
	return "", fmt.Errorf("%w, not %.20q", ErrConsent, text)
}

// Entry is one node that this one trusts.
type Entry struct {
	ID identity.ID `json:"id"` // of its key
	// Name is what it called itself when a person confirmed it; empty when it
	// was handed in.
	Name    string    `json:"name"`
	Since   time.Time `json:"since"`
	Consent Consent   `json:"consent"`
	// Addrs are where a person said that it is, if one did.
	Addrs []netip.AddrPort `json:"addresses,omitempty"`
	// Handed: trusted for this run alone, by whoever started the node; it is in
	// no file.
	Handed bool `json:"-"`
}

func (e Entry) check() error {
	if _, err := identity.ParseID(string(e.ID)); err != nil {
		return err
	}
	if discovery.CleanName(e.Name) != e.Name {
		return fmt.Errorf("the name %.80q is not fit to be shown", e.Name)
	}
	if len(e.Addrs) > MaxAddrs {
		return fmt.Errorf("%d addresses of one node", len(e.Addrs))
	}
	for _, a := range e.Addrs {
		if !a.IsValid() || a.Port() == 0 || len(a.Addr().Zone()) > 64 {
			return fmt.Errorf("the address %.80q", a)
		}
	}
	_, err := ParseConsent(string(e.Consent))
	return err
}
