// Package identity is who a node is: an Ed25519 key made at first start, an ID
// that is the hash of its public half, and TLS 1.3 configurations in which each
// side is known by that ID alone.
//
// Callers are node and node/control. No authority signs anything: the
// certificates are self-signed, made anew at each start, and only their key
// counts; names and dates in them mean nothing, so a wrong clock does no harm.
// Everything here is safe for concurrent use once Load has returned.
package identity
