// Package local lets commands on the same machine talk to the node that runs
// there: daisy nodes and daisy pair, while the app or daisy serve holds the
// node's folder. It is a Unix socket below that folder, for this user alone, with
// a line of JSON for each message; both ends are the same program.
//
// Callers: the app's commands. A Server answers any number of clients, each on
// its own goroutine, and Close waits for them. A Client is for one request, from
// one goroutine.
package local
