package rdma

import "errors"

// Solo returns the group of one rank, which needs no transport: every
// collective returns at once with what the caller put in.
func Solo() *Group { return NewGroup(solo{NewEnding()}, 0) }

type solo struct{ *Ending }

var errNoPeer = errors.New("a group of one rank has no peers")

func (solo) Kind() string                                 { return "solo" }
func (solo) Rank() int                                    { return 0 }
func (solo) WorldSize() int                               { return 1 }
func (solo) EagerLimit() int                              { return 0 }
func (solo) Send(int, Tag, []byte) error                  { return errNoPeer }
func (solo) Recv(int, Tag, []byte) error                  { return errNoPeer }
func (s solo) Abort(cause error)                          { s.End(cause) }
func (s solo) Close() error                               { s.End(ErrClosed); return nil }
func (solo) SendRecv(Tag, int, []byte, int, []byte) error { return errNoPeer }
