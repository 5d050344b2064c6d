// Package node is one machine in Daisy: who it is, whom it sees, and which
// cluster it is in.
//
// The caller is app. Start makes a Node that announces itself, finds its peers
// and answers them until Close. Join makes it lead a cluster: it invites the
// peers that were chosen, and when all of them consent, every one of them loads
// its shard of the model in its own process, connected to every other. A node
// that is invited asks its Config.Consent. A node is in one cluster at a time.
//
// All methods are safe for concurrent use. Every goroutine belongs to the Node
// or to a Cluster, and Node.Close waits for all of them. DESIGN.md beside this
// file has the order of messages and says who notices which loss.
//
// Limits: 32 nodes in a cluster, 256 peers in the list.
package node
