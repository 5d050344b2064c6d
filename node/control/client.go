package control

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"daisy/node/discovery"
	"daisy/node/identity"
)

const (
	helloPath = "/hello"
	groupPath = "/group"
	pairPath  = "/pair"
	maxHello  = 4 << 10
)

// http2 settings of both sides: pings notice a connection on which nothing
// comes back any more, and little is kept of what nobody reads.
var http2 = http.HTTP2Config{
	SendPingTimeout:               2 * time.Second,
	PingTimeout:                   5 * time.Second,
	MaxConcurrentStreams:          16,
	MaxReceiveBufferPerConnection: 128 << 10,
	MaxReceiveBufferPerStream:     maxMessage,
}

// newTransport makes HTTP/2 over the dialler's connections, one for each node,
// whose ID is the host of the URL.
func newTransport(d *Dialer) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			return d.dial(ctx, identity.ID(host), nil, controlProtocol)
		},
		Protocols:              protocols,
		HTTP2:                  &http2,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 16 << 10,
		IdleConnTimeout:        time.Minute,
	}
}

// Hello asks a node who it is. It blocks until ctx ends at the latest; an answer
// of another version is no error.
func (d *Dialer) Hello(ctx context.Context, id identity.ID) (Hello, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+string(id)+helloPath, nil)
	if err != nil {
		return Hello{}, err
	}
	resp, err := d.http.RoundTrip(req)
	if err != nil {
		return Hello{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Hello{}, refusal(resp)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxHello+1))
	if err != nil {
		return Hello{}, err
	}
	return parseHello(data, id)
}

// parseHello checks what the node id says of itself.
func parseHello(data []byte, id identity.ID) (Hello, error) {
	if len(data) > maxHello {
		return Hello{}, fmt.Errorf("a greeting of more than %d bytes", maxHello)
	}
	var h Hello
	if err := json.Unmarshal(data, &h); err != nil {
		return Hello{}, fmt.Errorf("no greeting: %w", err)
	}
	switch {
	case h.ID != id:
		return Hello{}, fmt.Errorf("node %s calls itself %.80q", id.Short(), h.ID)
	case h.Name == "" || discovery.CleanName(h.Name) != h.Name:
		return Hello{}, fmt.Errorf("the name %.80q is not fit to be shown", h.Name)
	case h.Version < 1 || h.Cores < 0 || h.MemoryBytes < 0:
		return Hello{}, errors.New("a greeting with negative numbers")
	}
	return h, nil
}

// Group opens a membership's stream to a node. It blocks until the node has
// answered; the stream lives until Abort, or until ctx ends.
func (d *Dialer) Group(ctx context.Context, id identity.ID) (*Stream, error) {
	lines, err := d.open(ctx, id, groupPath)
	if err != nil {
		return nil, err
	}
	return &Stream{lines}, nil
}

// ErrNoPairing: the node's Daisy is from before there was pairing; it must be
// updated.
var ErrNoPairing = errors.New("its Daisy is too old to be paired; install the same Daisy on both")

// Pair opens a pairing's stream to a node. It blocks and lives as Group's does.
func (d *Dialer) Pair(ctx context.Context, id identity.ID) (*Lines, error) {
	lines, err := d.open(ctx, id, pairPath)
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		err = ErrNoPairing
	}
	return lines, err
}

// open opens a stream of lines to a path of a node.
func (d *Dialer) open(ctx context.Context, id identity.ID, path string) (*Lines, error) {
	ctx, cancel := context.WithCancel(ctx)
	body, pipe := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(id)+path, body)
	if err != nil {
		cancel()
		return nil, err
	}
	// The answer's head comes at once, before anybody is asked.
	timer := time.AfterFunc(sendTimeout, cancel)
	resp, err := d.http.RoundTrip(req)
	timer.Stop()
	if err == nil && resp.StatusCode != http.StatusOK {
		err = refusal(resp)
		resp.Body.Close()
	}
	var peer ed25519.PublicKey
	if err == nil {
		if peer, err = identity.PeerKey(*resp.TLS); err != nil {
			resp.Body.Close()
		}
	}
	if err != nil {
		cancel()
		pipe.Close()
		return nil, err
	}
	write := func(line []byte) error {
		_, err := pipe.Write(line)
		return err
	}
	return newLines(peer, resp.Body, write, func() {
		cancel()
		pipe.CloseWithError(net.ErrClosed)
		resp.Body.Close()
	}), nil
}

// RefusedError: the node answered, and will not do what it was asked.
type RefusedError struct {
	Status int    // of HTTP
	Reason string // its own words, fit to be shown
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the node refuses: %s (%d)", e.Reason, e.Status)
}

func refusal(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxReason))
	return &RefusedError{resp.StatusCode, CleanReason(string(text))}
}
