package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"daisy/node/trust"
)

// ErrNotRunning: no node runs with that folder; start one.
var ErrNotRunning = errors.New("no Daisy runs with this folder")

// Client is a connection to the running node, for one request. It ends with ctx
// of Dial, and with Close.
type Client struct {
	*lines
	ctx  context.Context // of Dial
	stop func() bool

	over chan struct{} // of a pairing: closed at its end, when err is set
	err  error
}

// Dial connects to the node that runs with the folder. ErrNotRunning if there is
// none.
func Dial(ctx context.Context, dir string) (*Client, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	if err := private(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotRunning
	} else if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, err
	}
	return &Client{lines: newLines(conn), ctx: ctx, stop: context.AfterFunc(ctx, func() { conn.Close() })}, nil
}

// Close ends the connection; a pairing that this client began is refused then.
func (c *Client) Close() error {
	c.stop()
	err := c.lines.Close()
	if c.over != nil {
		<-c.over
	}
	return err
}

func (c *Client) ask(r request) (reply, error) {
	if err := c.send(r); err != nil {
		return reply{}, err
	}
	return c.next()
}

func (c *Client) next() (r reply, err error) {
	if err = c.receive(&r); err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	if err != nil && c.ctx.Err() != nil {
		err = context.Cause(c.ctx) // which closed the connection
	}
	return r, err
}

// Nodes lists the nodes that were found, and those that are paired.
func (c *Client) Nodes() ([]Row, error) {
	r, err := c.ask(request{Command: cmdNodes})
	return r.Rows, err
}

// Pair begins to pair with a node, named as people name it, or joins the pairing
// that it has begun; with "" the next that anybody begins. It blocks until the
// digits are there; finding the node may take the time given. Then Decide. It is
// called once.
func (c *Client) Pair(node string, within time.Duration) (Attempt, error) {
	r, err := c.ask(request{Command: cmdPair, Node: node, Within: within})
	if err == nil && r.Attempt == nil {
		err = fmt.Errorf("no digits came")
	}
	if err != nil {
		return Attempt{}, err
	}
	c.over = make(chan struct{})
	go func() { // Close waits for it
		defer close(c.over)
		_, c.err = c.next()
	}()
	return *r.Attempt, nil
}

// Over is closed when the pairing is over; then Decide returns at once.
func (c *Client) Over() <-chan struct{} { return c.over }

// Decide says what the person says: that the digits are the same, or, when
// digits are given, what the other screen shows. It blocks until the pairing is
// over, and returns nil if the two nodes trust each other.
func (c *Client) Decide(yes bool, digits string) error {
	_ = c.send(decision{yes, digits}) // if it cannot be sent, next fails as well
	<-c.over
	return c.err
}

// Forget withdraws the trust in a node.
func (c *Client) Forget(node string) error {
	_, err := c.ask(request{Command: cmdForget, Node: node})
	return err
}

// SetConsent says what a paired leader's invitations meet.
func (c *Client) SetConsent(node string, consent trust.Consent) error {
	_, err := c.ask(request{Command: cmdConsent, Node: node, Consent: consent})
	return err
}
