// Package session is what the windows and the command line have in common: it
// asks the model and keeps what was said, and it holds the state of the cluster
// as a person sees it. It knows no window toolkit.
//
// Callers: app/ui and the commands of app.
//
// Session streams an answer to an observer and into the history at the same
// time; text that arrived is kept whatever happens next. Cluster is the view
// model of the cluster window. Invitations carries the question "may this Mac
// join?" from a node to whoever can answer it.
//
// Concurrency: everything may be used from several goroutines. Observers are
// called in order, one at a time per subject, and must not block.
package session
