package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"daisy/rdma/linkbench"
	"daisy/rdma/tcp"
	"daisy/rdma/tcp/tcptest"
)

// Two machines first exchange a line of JSON each, in the clear: what is to be
// measured, and whether the listening side agrees.
type linkRequest struct {
	Version int               `json:"daisy_bench_link"`
	TLS     bool              `json:"tls"`
	Verbs   bool              `json:"verbs,omitempty"`
	Options linkbench.Options `json:"options"`
}

type linkReply struct {
	Error string `json:"error"`
}

const (
	linkVersion = 1
	maxLinkLine = 8 << 10
)

// dial is the side of --peer, rank 0.
func (b *linkBenchmark) dial(ctx context.Context, o linkbench.Options, status io.Writer) (*linkbench.Result, error) {
	secure, overVerbs := b.transport == "tcp+tls", b.transport == "verbs"
	fmt.Fprintf(status, "Measuring to %s, %s.\n", b.peer, linkWords(overVerbs, secure))
	dialer := net.Dialer{Timeout: linkPatience}
	c, err := dialer.DialContext(ctx, "tcp", b.peer)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(linkPatience))
	if err := json.NewEncoder(c).Encode(linkRequest{linkVersion, secure, overVerbs, o}); err != nil {
		return nil, err
	}
	var reply linkReply
	if err := readLinkLine(c, &reply); err != nil {
		return nil, fmt.Errorf("%s does not answer as daisy bench link does: %w", b.peer, err)
	}
	if reply.Error != "" {
		return nil, fmt.Errorf("%s refuses: %s", b.peer, oneLine(errors.New(reply.Error)))
	}
	return measureLink(ctx, 0, c, secure, overVerbs, o)
}

// await is the side of --listen, rank 1. It measures once, what the other asks
// for; who says something else is turned away.
func (b *linkBenchmark) await(ctx context.Context, o linkbench.Options, status io.Writer) (*linkbench.Result, error) {
	secure, overVerbs := b.transport == "tcp+tls", b.transport == "verbs"
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", b.listen)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	fmt.Fprintf(status, "Waiting on %s for one daisy bench link --peer, %s.\n", l.Addr(), linkWords(overVerbs, secure))
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, err
		}
		asked, err := hearLinkRequest(c, secure, overVerbs)
		if err != nil {
			c.Close()
			fmt.Fprintf(status, "Turned %s away: %s\n", c.RemoteAddr(), oneLine(err))
			continue
		}
		defer c.Close()
		fmt.Fprintf(status, "Measuring with %s.\n", c.RemoteAddr())
		asked.Progress = o.Progress
		return measureLink(ctx, 1, c, secure, overVerbs, asked)
	}
}

// hearLinkRequest reads the other side's request and answers it.
func hearLinkRequest(c net.Conn, secure, overVerbs bool) (linkbench.Options, error) {
	c.SetDeadline(time.Now().Add(linkPatience))
	var q linkRequest
	if err := readLinkLine(c, &q); err != nil {
		return q.Options, err
	}
	o, err := q.Options.Complete()
	switch {
	case q.Version != linkVersion:
		err = fmt.Errorf("this side speaks version %d of the benchmark, the other %d", linkVersion, q.Version)
	case q.TLS != secure:
		err = errors.New("one side was started with --tls and the other without")
	case q.Verbs != overVerbs:
		err = errors.New("one side was started with --transport verbs and the other without")
	}
	var reply linkReply
	if err != nil {
		reply.Error = err.Error()
	}
	return o, errors.Join(err, json.NewEncoder(c).Encode(reply))
}

func measureLink(ctx context.Context, rank int, c net.Conn, secure, overVerbs bool, o linkbench.Options) (*linkbench.Result, error) {
	c.SetDeadline(time.Time{})
	if secure {
		client, server, err := tcptest.Configs()
		if err != nil {
			return nil, err
		}
		client.InsecureSkipVerify = true // the key is new, and nothing that travels is secret
		if rank == 0 {
			c = tls.Client(tcp.Wire(c), client)
		} else {
			c = tls.Server(tcp.Wire(c), server)
		}
	}
	conns := make([]net.Conn, 2)
	conns[1-rank] = c
	g, err := linkGroup(ctx, rank, conns, overVerbs)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return linkbench.Run(ctx, g, o)
}

// linkWords say what is measured.
func linkWords(overVerbs, secure bool) string {
	switch {
	case overVerbs:
		return "over RDMA, not encrypted"
	case secure:
		return "over TLS 1.3 with a key made for this run that nobody checks"
	}
	return "over TCP, not encrypted"
}

// readLinkLine reads a line of JSON and not a byte more.
func readLinkLine(r io.Reader, v any) error {
	var line []byte
	for b := [1]byte{}; ; {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return err
		}
		if b[0] == '\n' {
			return json.Unmarshal(line, v)
		}
		if line = append(line, b[0]); len(line) > maxLinkLine {
			return errors.New("it says too much")
		}
	}
}
