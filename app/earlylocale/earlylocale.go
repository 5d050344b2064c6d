// Package earlylocale spares people three lines of complaint from fyne on every
// command. Fyne asks for the user's languages while it is initialised, and takes
// the "C" of "C.UTF-8", the usual locale of servers and containers, for a broken
// language tag; plain "C" it knows.
//
// It must be initialised before fyne: it imports nothing but os, and Go
// initialises packages that are ready in the order of their paths, "daisy"
// before "fyne.io". TestNoComplaints in app holds that.
package earlylocale

import (
	"os"
	"strings"
)

func init() {
	for _, name := range [...]string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		locale, _, encoded := strings.Cut(os.Getenv(name), ".")
		if encoded && (locale == "C" || locale == "POSIX") {
			_ = os.Setenv(name, "C") // cannot fail for these
		}
	}
}
