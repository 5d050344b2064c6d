// Package fake is Apple's verbs provider without Apple's hardware, for tests:
// a provider.Provider that enforces its rules and limits, in Go. Package cfake
// beside it is the same as a C library, which is loaded as the machine's own
// is; both are a Fabric, and one table of tests (rules_test.go) runs over both.
//
// Nodes have devices; a cable joins two of them. What is enforced:
//
//   - UC alone; SEND and RECV alone; one scatter/gather entry; nothing inline
//   - a SEND and the RECV that takes it span as many frames of 4 KiB, or the
//     RECV fails and its queue pair with it
//   - a SEND is held until the peer has posted a RECV; it then completes, which
//     is before it is delivered; destroying the sender loses what is under way
//   - queues are counted in frames: beyond the depth asked for, or the port's
//     budget, posts fail with -12; the frames of a post come back when its
//     completion is polled
//   - 10 queue pairs, 11 domains, 11 completion queues and 100 registrations a
//     device, whoever uses it
//   - memory is page-aligned, crosses no 4 GiB boundary, and is registered
//     before the queue pair becomes ready to receive
//   - the GID must be the IPv4-mapped one, whose index differs between devices;
//     a wrong one is errno 22, the wrong cable errno 60
//   - posts before ready-to-send are refused; each step has its exact mask
//   - a port without a cable is down and gives no domain
//   - a frozen node or a pulled cable is silence
//   - after a step to ERR no memory can be released any more
//
// Any call can be made to fail by Fail. Numbers are macOS's on every system.
//
// Concurrency is as package provider has it; a Fabric may be used from anywhere.
package fake
