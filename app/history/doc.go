// Package history keeps conversations in one SQLite file on the person's own
// machine. An answer is written while it streams, so a crash loses at most its
// last second.
//
// Callers: app/session (and through it the windows and the command line).
//
// Concurrency: a Store may be used from several goroutines, and several
// processes may have the same file open (WAL, one writer at a time, up to
// five seconds of waiting for it). An Answer has one writer at a time.
//
// Interrupted answers: every Store holds a shared lock on PATH.lock as long as
// it is open. Open first tries to hold that lock alone; only then, when no other
// process can be in the middle of an answer, rows still marked as streaming
// become StatusInterrupted. With another process present they are left as they
// are, and the next Open that is alone settles them.
//
// Limits: one message's text is held in memory; everything else is streamed.
package history
