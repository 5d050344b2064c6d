package tcp

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// hangups waits for peers to end their direction of a connection. It is an
// epoll instance that asks for nothing but that, so data under way wake nobody.
type hangups struct {
	fd    int
	r, w  *os.File // closing w makes wait return
	event [1]unix.EpollEvent
}

var errStopped = errors.New("stopped")

func watchHangups(peers []*peer) (*hangups, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	h := &hangups{fd: fd}
	if h.r, h.w, err = os.Pipe(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	add := func(s int, index int) error {
		return unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, s,
			&unix.EpollEvent{Events: unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(index)})
	}
	err = add(int(h.r.Fd()), -1)
	for i, p := range peers {
		if p == nil || err != nil {
			continue
		}
		c, cerr := p.raw.SyscallConn()
		if err = cerr; err == nil {
			if cerr := c.Control(func(s uintptr) { err = add(int(s), i) }); err == nil {
				err = cerr
			}
		}
	}
	if err != nil {
		h.stop()
		h.close()
		return nil, err
	}
	return h, nil
}

// wait blocks, on a thread of its own, until a peer has hung up, and returns
// its index. It fails after stop.
func (h *hangups) wait() (int, error) {
	for {
		_, err := unix.EpollWait(h.fd, h.event[:], -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		if h.event[0].Fd < 0 {
			return 0, errStopped
		}
		return int(h.event[0].Fd), nil
	}
}

// stop ends wait; to be called once.
func (h *hangups) stop() { h.w.Close() }

// close frees what wait uses, after its last call.
func (h *hangups) close() {
	h.r.Close()
	unix.Close(h.fd)
}
