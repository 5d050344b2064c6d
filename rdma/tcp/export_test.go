package tcp

import "errors"

// Kill closes the connections as the kernel does for a process that dies.
func (t *Transport) Kill() {
	t.End(errors.New("killed"))
	for _, p := range t.peers {
		if p != nil {
			p.raw.Close()
		}
	}
	t.watch.stop()
}

// NewWithin is New with another patience.
var NewWithin = connectWithin
