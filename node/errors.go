package node

import (
	"errors"
	"fmt"
)

// Errors that callers tell apart. The first six come inside a *NodeError, which
// says whom they are about.
var (
	// ErrLost: the node's process, machine or connection is gone; the cluster
	// has ended. Join again, perhaps without it.
	ErrLost = errors.New("was lost")
	// ErrLeft: the node's owner took it out; the cluster has ended.
	ErrLeft = errors.New("left the cluster")
	// ErrRefused: the node does not take part, for the reason given.
	ErrRefused = errors.New("does not take part")
	// ErrEnded: the node, which led the cluster, ended it.
	ErrEnded = errors.New("ended the cluster")
	// ErrFailed: the node could not go on, for the reason given.
	ErrFailed = errors.New("failed")
	// ErrNotPaired: the two nodes do not trust each other; pair them first.
	ErrNotPaired = errors.New("is not paired with this node")

	// ErrBusy: this node is in a cluster already; leave it first.
	ErrBusy = errors.New("this node is in a cluster already")
	// ErrNotLeader: only the node that leads the cluster takes requests.
	ErrNotLeader = errors.New("only the node that leads the cluster can be asked")
	// ErrClosed: the node or the cluster was closed here.
	ErrClosed = errors.New("closed")
	// ErrUnknownPeer: no such node has been found.
	ErrUnknownPeer = errors.New("no such node has been found")
)

// NodeError is what happened to, or was done by, another node.
type NodeError struct {
	ID   ID
	Name string
	What error // one of the first six errors above
	// Reason is more of it, in words; it may be nil.
	Reason error
}

func (e *NodeError) Error() string {
	if e.Reason == nil {
		return fmt.Sprintf("%s %v", e.Name, e.What)
	}
	return fmt.Sprintf("%s %v: %v", e.Name, e.What, e.Reason)
}

// Unwrap gives What and Reason.
func (e *NodeError) Unwrap() []error {
	if e.Reason == nil {
		return []error{e.What}
	}
	return []error{e.What, e.Reason}
}
