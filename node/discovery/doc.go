// Package discovery lets nodes on one desk find each other: Bonjour service
// _daisy._tcp, announced and looked for on chosen network interfaces.
//
// The caller is node, which merges what is found into one list and decides by
// its own connections who is alive: an announcement proves nothing, and TLS
// tells the right node from an impostor later.
//
// A Service owns its goroutines, and Close waits for them. It speaks mDNS by
// itself, as little of it as this needs, and any Bonjour browser shows the nodes.
// The library zeroconf v1.0.0 was tried: its client kept 70 MB for one hostile
// packet of 63 KB, never tells of changed or removed nodes and hides on which
// interface a packet came; its server races in Shutdown (WaitGroup.Add against
// Wait) and leaves a goroutine behind for seconds. The tests hold it against this
// package as a second implementation.
//
// Limits on bytes from the network: packets of 9000 bytes, 64 records or 16
// questions a packet, 4 nodes a packet, 16 addresses a node, names of 63 bytes,
// 20 answers a second. Nothing is kept from one packet to the next.
package discovery
