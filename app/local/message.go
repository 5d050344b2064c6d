package local

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"time"

	"daisy/node"
	"daisy/node/trust"
)

// request is the client's first line.
type request struct {
	Command string        `json:"command"`        // one of the below
	Node    string        `json:"node,omitempty"` // a name, an ID or its beginning, or host:port
	Consent trust.Consent `json:"consent,omitempty"`
	Within  time.Duration `json:"within,omitempty"` // to find the node
}

const (
	cmdNodes   = "nodes"
	cmdPair    = "pair"
	cmdForget  = "forget"
	cmdConsent = "consent"
)

// decision is the client's second line, with pair.
type decision struct {
	Yes    bool   `json:"yes"`
	Digits string `json:"digits,omitempty"` // what the other screen shows, instead of Yes
}

// reply is each of the server's lines; Error and Done are the last.
type reply struct {
	Rows    []Row    `json:"rows,omitempty"`
	Attempt *Attempt `json:"attempt,omitempty"`
	Done    bool     `json:"done,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Row is a node as daisy nodes lists it.
type Row struct {
	ID      node.ID       `json:"id"`
	Name    string        `json:"name"`
	State   string        `json:"state"`            // a node.PeerState, or StateAbsent
	Reason  string        `json:"reason,omitempty"` // in words
	Paired  bool          `json:"paired"`           // trusted here
	Since   *time.Time    `json:"since,omitempty"`  // with Paired
	Consent trust.Consent `json:"consent,omitempty"`
	Address []string      `json:"address,omitempty"`
}

// StateAbsent: paired, and not found in the network.
const StateAbsent = "absent"

// Attempt is a pairing whose digits are to be compared.
type Attempt struct {
	ID       node.ID   `json:"id"`
	Name     string    `json:"name"` // that it gives itself
	Digits   string    `json:"digits"`
	Incoming bool      `json:"incoming"`
	Expires  time.Time `json:"expires"`
	// SameName: another node of this name is paired already, with another key.
	SameName bool `json:"same_name,omitempty"`
}

// maxLine bounds what is read of a line; both sides are this user's own.
const maxLine = 1 << 20

// lines is one end of the socket.
type lines struct {
	net.Conn
	in *bufio.Scanner
}

func newLines(c net.Conn) *lines {
	in := bufio.NewScanner(c)
	in.Buffer(nil, maxLine)
	return &lines{c, in}
}

func (l *lines) send(v any) error { return json.NewEncoder(l).Encode(v) }

var errGone = errors.New("the running Daisy has ended")

func (l *lines) receive(v any) error {
	if !l.in.Scan() {
		if err := l.in.Err(); err != nil {
			return err
		}
		return errGone
	}
	return json.Unmarshal(l.in.Bytes(), v)
}
