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
// # Known failures
//
// What users have met with Apple's provider, and the test that meets it, here
// on both fakes or on the C one, with the class of the error; the words that a
// person gets are held by TestErrors of package provider:
//
//	alloc_pd NULL: the port is down               TestPortDown
//	alloc_pd NULL: all domains are in use         TestLimits
//	RTR errno 22: GID, index, own address         TestGID
//	RTR errno 60: not at this cable's other end   TestGID, TestChain
//	RTR errno 96, RTR errno 16: driver is stale   TestInjected (the cause is the kernel's)
//	RTR blocks for long                           TestInjected
//	create_qp errno 16: the 11th                  TestLimits
//	create_qp errno 102: RC                       TestKinds
//	reg_mr NULL, 12: the 101st                    TestLimits
//	reg_mr NULL, 22: odd requests                 TestMemory
//	post -12: the frames are used up              TestDepth, TestBudget
//	a post after the cable was pulled faults      TestFault (C: a process dies of it)
//	a dead peer is silence                        TestPeerDies, TestPull, TestProcesses
//	memory cannot be released after ERR           TestTeardown
//	memory across a 4 GiB boundary                TestMemory (the real one takes it and corrupts)
//	completion precedes delivery                  TestCompletionBeforeDelivery
//
// Not met by a test here: errno 60 and 65 of connecting, and "Recv failed with
// errno=2", which are TCP's; a hanging ibv_devinfo; kernel panics and the
// deadlock in dealloc_pd; what leaks beyond the end of a process, which here
// gives everything back to the next that asks; trouble after 23 idle minutes.
//
// Concurrency is as package provider has it; a Fabric may be used from anywhere.
package fake
