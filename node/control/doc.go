// Package control is how nodes talk to each other: one TCP port for each node,
// TLS 1.3 on it between identities, and below that the protocol that the ALPN
// name says:
//
//   - "h2": HTTP/2 with JSON. GET /hello says who a node is. POST /pair is one
//     pairing (package pairing), the only other thing a stranger may ask for.
//     POST /group is one
//     membership: a stream of messages both ways for as long as the group lives
//     (package node has their order). When either side goes away, so does the
//     stream, and that is how each notices.
//   - "daisy-data/1": a connection between two ranks of a group. The dialler
//     sends a preamble, the other side answers one byte, and from then on it
//     belongs to rdma/tcp.
//
// The caller is node. A Server and a Dialer are safe for concurrent use; each
// owns its goroutines, and Close waits for them. Every message carries the
// protocol version, and another version is refused in words.
//
// Limits on what strangers can send: messages of 64 KiB, 32 members a group, 16
// addresses a member, 64 handshakes at once of 5 seconds each, 256 connections
// that keep 128 KiB each of what was not read, 8 group streams and
// 4 pairings at once.
package control
