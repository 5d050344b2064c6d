// Package pairing lets two people make two nodes trust each other's keys: both
// screens show six digits, and both people say whether they are the same. The
// protocol and the attacks it stands are in docs/pairing.md.
//
// The caller is node, which carries the messages over the control port, proves
// both keys by TLS before the first of them, and keeps the trust. This package
// opens no connection and writes no file.
//
// An Attempt is one pairing: Agree exchanges the messages that make the digits,
// Run waits for the two people. Gate sees to it that there is one at a time, and
// slows down and locks out whoever keeps failing.
//
// Concurrency: Agree and Run block, one after the other, on the goroutine that
// owns the Attempt; everything else may be called from any. Limits on what the
// other side can send: lines of 1 KiB, names of 63 bytes, ten seconds until the
// digits are there, two minutes from then on.
package pairing
