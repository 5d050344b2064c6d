package heartbeat

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// slack is how late this process may be before that counts as not having
	// run.
	slack = interval / 2
	// pause is how long it must not have run for others to have given it up,
	// recheck how long it then listens before it judges again; not more often
	// than seldom, so that a process which hardly ever runs still judges.
	pause   = time.Second
	recheck = 2 * time.Second
	seldom  = 10 * time.Second
	// setup is how long a rank may be unheard before that is told.
	setup = 3 * time.Second
	// goodbyes are sent in a row, since one may get lost.
	goodbyes = 3
	// maxDrain bounds how many datagrams are taken without looking at the time.
	maxDrain = 4096
)

// Config says who is watched. The callbacks are called one at a time from a
// goroutine of the Monitor, at most once for each rank; they must not block and must
// not call Close.
type Config struct {
	Epoch uint64
	Rank  int    // this process
	Peers []Peer // the other ranks
	// Lost is told of a rank that has fallen silent; the reason is a
	// *SilenceError.
	Lost func(rank int, reason error)
	// Unheard, which may be nil, is told of a rank of which nothing has come
	// in the first three seconds. If it is heard later, it is watched from
	// then on.
	Unheard func(rank int)
}

// Monitor beats for this rank and listens for the others, until Close.
type Monitor struct {
	config  Config
	socket  socket
	now     func() time.Time // monotonic
	start   time.Time
	closing chan struct{}
	once    sync.Once
	work    sync.WaitGroup // both goroutines

	mu       sync.Mutex       // guards the fields below
	wall     func() time.Time // the time of day
	remotes  []*remote
	byRank   map[uint32]*remote
	refused  uint64    // datagrams of nobody known
	resume   time.Time // nobody is judged before
	paused   time.Duration
	seenMono time.Time // the last pass, by both clocks
	seenWall time.Time
	out      [datagramSize]byte
}

// Start begins to beat and to listen on conn, which belongs to the Monitor from
// the call on, also when it fails. It does not block.
func Start(conn *net.UDPConn, config Config) (*Monitor, error) {
	socket, err := newSocket(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	m, err := newMonitor(socket, config, time.Now)
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	m.run()
	return m, nil
}

func newMonitor(s socket, config Config, now func() time.Time) (*Monitor, error) {
	if config.Lost == nil {
		return nil, errors.New("nobody is told of losses")
	}
	m := &Monitor{
		config: config, socket: s, now: now, start: now(), closing: make(chan struct{}),
		byRank: map[uint32]*remote{}, wall: func() time.Time { return time.Now().Round(0) },
	}
	for _, p := range config.Peers {
		if p.Rank < 0 || p.Rank == config.Rank || m.byRank[uint32(p.Rank)] != nil || !p.Addr.IsValid() {
			return nil, fmt.Errorf("rank %d at %v is no peer of rank %d", p.Rank, p.Addr, config.Rank)
		}
		r := &remote{Peer: p, out: newMAC(p.Out), in: newMAC(p.In), every: interval}
		m.remotes = append(m.remotes, r)
		m.byRank[uint32(p.Rank)] = r
	}
	return m, nil
}

// run starts the goroutines that Close waits for.
func (m *Monitor) run() {
	m.discard()
	m.work.Go(m.beat)
	m.work.Go(m.listen)
}

// Close says goodbye to the other ranks and stops. It does not wait for them,
// and may be called more than once.
func (m *Monitor) Close() error {
	m.once.Do(func() {
		close(m.closing)
	})
	m.work.Wait()
	return nil
}

// Stats describes the way to each other rank, in the order of Config.Peers.
func (m *Monitor) Stats() []Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	all := make([]Stats, len(m.remotes))
	for i, r := range m.remotes {
		all[i] = r.stats(now)
	}
	return all
}

// Refused counts datagrams that are from no rank of this group.
func (m *Monitor) Refused() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused
}

// beat is the goroutine that sends and judges. It is woken by timers alone: when
// goroutines keep all processors busy, Go runs a timer's goroutine next, while
// one that waits for the network has to queue.
func (m *Monitor) beat() {
	defer m.socket.Close() // ends listen
	beatAt := m.now()
	wake := beatAt
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-m.closing:
			m.leave()
			return
		}
		// The order matters: what came before now is read before anybody is
		// judged by now.
		now := m.now()
		m.account(now, now.Sub(wake))
		if !now.Before(beatAt) {
			m.say(kindBeat, now)
			if beatAt = beatAt.Add(interval); !beatAt.After(now) {
				beatAt = now.Add(interval)
			}
		}
		m.drain()
		m.judge(now)
		wake = m.nextWake(beatAt)
		timer.Reset(wake.Sub(m.now()))
	}
}

// listen is the goroutine that takes each datagram when it comes.
func (m *Monitor) listen() {
	var buf [bufferSize]byte
	for {
		n, err := m.socket.Read(buf[:])
		if err == nil {
			m.take(buf[:n])
			continue
		}
		// A socket that tells of trouble on the way may be of use again in a
		// moment.
		select {
		case <-m.closing:
			return
		case <-time.After(interval):
		}
	}
}

// account excuses everybody for the time in which this process did not run, or
// the machine slept: late by the monotonic clock, or by the time of day, which
// goes on in a sleep. A time of day that is set forward does no harm.
func (m *Monitor) account(now time.Time, late time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	wall := m.wall()
	slept := time.Duration(0)
	if !m.seenMono.IsZero() {
		slept = wall.Sub(m.seenWall) - now.Sub(m.seenMono)
	}
	m.seenMono, m.seenWall = now, wall
	if late > slack {
		for _, r := range m.remotes {
			if !r.heard.IsZero() {
				if r.heard = r.heard.Add(late); r.heard.After(now) {
					r.heard = now
				}
			}
		}
	}
	if p := max(late, slept); p > pause && now.Sub(m.resume) > seldom {
		m.resume, m.paused = now.Add(recheck), p
	}
}

// judge reports who is overdue at now, after all was read that had come by then.
func (m *Monitor) judge(now time.Time) {
	type verdict struct {
		rank   int
		reason *SilenceError
	}
	var verdicts []verdict
	m.mu.Lock()
	silent := -1
	for _, r := range m.remotes {
		if r.lost {
			silent++
		}
		if !r.judged() || now.Before(m.resume) {
			continue
		}
		bound, silence := r.bound(), now.Sub(r.heard)
		if silence >= bound/2 {
			silent++
		}
		if silence >= bound {
			r.lost = true
			reason := &SilenceError{Silence: silence, Bound: bound}
			if m.paused > 0 && now.Sub(m.resume) < maxBound {
				reason.Paused = m.paused
			}
			verdicts = append(verdicts, verdict{r.Rank, reason})
		}
	}
	m.mu.Unlock()
	for _, v := range verdicts {
		v.reason.Others = silent
		m.config.Lost(v.rank, v.reason)
	}
	m.tellUnheard(now)
}

func (m *Monitor) tellUnheard(now time.Time) {
	if now.Sub(m.start) < setup {
		return
	}
	m.mu.Lock()
	var unheard []int
	for _, r := range m.remotes {
		if r.heard.IsZero() && !r.left && !r.unheard {
			r.unheard = true
			unheard = append(unheard, r.Rank)
		}
	}
	m.mu.Unlock()
	if m.config.Unheard != nil {
		for _, rank := range unheard {
			m.config.Unheard(rank)
		}
	}
}

// nextWake is the next beat, or before that the moment at which somebody would
// be overdue.
func (m *Monitor) nextWake(beatAt time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	wake := beatAt
	for _, r := range m.remotes {
		if r.judged() {
			if d := r.deadline(); d.Before(wake) && !d.Before(m.resume) {
				wake = d
			}
		}
	}
	return wake
}

// say sends everybody a datagram. What cannot be sent is lost, like any other.
func (m *Monitor) say(k kind, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clock := m.clock(now)
	for _, r := range m.remotes {
		d := r.next(k, m.config.Epoch, m.config.Rank, now, clock)
		d.put(&m.out, r.out)
		_, _ = m.socket.WriteTo(m.out[:], r.Addr)
	}
}

// clock is what this rank's datagrams bear.
func (m *Monitor) clock(now time.Time) uint64 { return uint64(max(now.Sub(m.start), 0)) + 1 }

// drain takes what has come already.
func (m *Monitor) drain() {
	var buf [bufferSize]byte
	for range maxDrain {
		n, ok := m.socket.Try(buf[:])
		if !ok {
			return
		}
		m.take(buf[:n])
	}
}

// discard throws away what came before the start: it is old, and how old is not
// known.
func (m *Monitor) discard() {
	var buf [bufferSize]byte
	for range maxDrain {
		if _, ok := m.socket.Try(buf[:]); !ok {
			return
		}
	}
}

// take looks at what may be a datagram, from wherever it comes: its signature
// says who sent it.
func (m *Monitor) take(b []byte) {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := parse(b)
	r := m.byRank[d.from]
	if !ok || d.epoch != m.config.Epoch || d.to != uint32(m.config.Rank) || r == nil {
		m.refused++
		return
	}
	if !authentic(b, r.in) {
		r.refused++
		return
	}
	r.accept(&d, now, m.clock(now))
}

// leave says goodbye.
func (m *Monitor) leave() {
	for range goodbyes {
		m.say(kindGoodbye, m.now())
	}
}
