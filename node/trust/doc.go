// Package trust keeps which other nodes this one is paired with, and what each
// of them may do without asking.
//
// The caller is node. A Store is safe for concurrent use; List, Get and Has do
// not block on the disk, the others wait until the file is written and synced.
//
// The file is JSON, mode 0600, replaced as a whole: after a crash or on a full
// disk it is what it was before. A file that is damaged, of a later version or
// open to others is never touched; Open says what to do. At most 256 nodes and
// 512 KiB are kept.
package trust
