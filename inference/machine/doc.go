// Package machine tells what this machine has. Callers are inference, which takes
// no more memory than there is, and node, which tells its peers.
package machine
