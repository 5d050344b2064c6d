package discovery

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"daisy/node/identity"
)

// Announcement is what one node says of itself. Nothing in it is proved.
type Announcement struct {
	ID       identity.ID
	Name     string // for people; CleanName would not change it
	Protocol int    // version of the control protocol it speaks
	// Addrs are where it may be dialled from here; never empty.
	Addrs []netip.AddrPort
}

// maxName is the longest name in bytes.
const maxName = 63

// CleanName makes a name fit to be announced and shown: printable characters
// only (nothing that could reorder or hide text), single spaces, maxName bytes.
// It may be empty.
func CleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return -1
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	for len(name) > maxName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return strings.TrimSpace(name)
}

// The TXT record, version 1: three strings in any order; others are ignored, so
// that later versions can add some.
//
//	id=<node id>  name=<name>  v=<protocol>
func txtRecord(a Announcement) []string {
	return []string{"id=" + string(a.ID), "name=" + a.Name, "v=" + strconv.Itoa(a.Protocol)}
}

// parseTXT reads a TXT record strictly; the addresses are not its business.
func parseTXT(txt []string) (Announcement, error) {
	const maxStrings = 16
	if len(txt) > maxStrings {
		return Announcement{}, fmt.Errorf("more than %d strings", maxStrings)
	}
	values := map[string]string{}
	for _, s := range txt {
		key, value, ok := strings.Cut(s, "=")
		if !ok || !slices.Contains([]string{"id", "name", "v"}, key) {
			continue
		}
		if _, twice := values[key]; twice {
			return Announcement{}, fmt.Errorf("%s is given twice", key)
		}
		values[key] = value
	}
	id, err := identity.ParseID(values["id"])
	if err != nil {
		return Announcement{}, err
	}
	name := values["name"]
	if name == "" || CleanName(name) != name {
		return Announcement{}, fmt.Errorf("the name %.80q is not fit to be shown", name)
	}
	protocol, err := strconv.Atoi(values["v"])
	if err != nil || protocol < 1 || protocol > 9999 || strconv.Itoa(protocol) != values["v"] {
		return Announcement{}, fmt.Errorf("%.20q is no protocol version", values["v"])
	}
	return Announcement{ID: id, Name: name, Protocol: protocol}, nil
}
