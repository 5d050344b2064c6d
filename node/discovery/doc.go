// Package discovery lets nodes on one desk find each other: Bonjour service
// _daisy._tcp, announced and looked for on chosen network interfaces.
//
// The caller is node, which merges what is found into one list and decides by
// its own connections who is alive: an announcement proves nothing, and TLS
// tells the right node from an impostor later.
//
// A Service owns its goroutines and Close waits for them, but for the announcer
// of zeroconf, whose start-up goroutine sleeps on for at most four seconds
// without touching anything of ours. Announcing is zeroconf's (it answers the
// queries of others and says goodbye). Looking is ours, because zeroconf's
// client keeps up to a hundred megabytes for one hostile packet, never tells of
// changed or removed nodes, and hides on which interface a packet came.
//
// Limits on bytes from the network: packets of 9000 bytes, 64 records a packet,
// 4 nodes a packet, 16 addresses a node, names of 63 bytes. Nothing is kept
// from one packet to the next.
package discovery
