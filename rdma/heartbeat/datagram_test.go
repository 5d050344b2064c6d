package heartbeat

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// beatFrom is a datagram from rank 1 to rank 0 of epoch 5, as every test has it.
func beatFrom(counter uint64) datagram {
	return datagram{kind: kindBeat, interval: interval, epoch: 5, from: 1, to: 0, counter: counter, sent: 1000 + counter}
}

func signed(d datagram, key Key) []byte {
	var b [datagramSize]byte
	d.put(&b, newMAC(key))
	return b[:]
}

// idle is a Monitor of rank 0 of 3 that does not run: datagrams are put in.
func idle(tb testing.TB) *Monitor {
	tb.Helper()
	m, err := newMonitor(newNetwork(1, lan).conn(0), Config{Epoch: 5, Rank: 0, Peers: peersOf(0, 3), Lost: func(int, error) {}}, time.Now)
	require.NoError(tb, err)
	return m
}

func TestDatagramBytes(t *testing.T) {
	d := datagram{kind: kindGoodbye, interval: 0x102 * time.Millisecond, epoch: 0x1112131415161718, from: 0x21222324, to: 0x31323334,
		counter: 0x4142434445464748, sent: 0x5152535455565758, echo: 0x6162636465666768, held: 0x7172737475767778}
	b := signed(d, Key{1})
	want := "DSYh\x01\x02\x02\x01" + "\x18\x17\x16\x15\x14\x13\x12\x11" + "\x24\x23\x22\x21" + "\x34\x33\x32\x31" +
		"\x48\x47\x46\x45\x44\x43\x42\x41" + "\x58\x57\x56\x55\x54\x53\x52\x51" + "\x68\x67\x66\x65\x64\x63\x62\x61" + "\x78\x77\x76\x75\x74\x73\x72\x71"
	require.Equal(t, want, string(b[:macOffset]))
	key := Key{1}
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte(want))
	require.Equal(t, h.Sum(nil)[:16], b[macOffset:])
	back, ok := parse(b)
	require.True(t, ok)
	assert.Equal(t, d, back)
	assert.True(t, authentic(b, newMAC(Key{1})))
	assert.False(t, authentic(b, newMAC(Key{2})))
}

// TestOnlyTheRightDatagramCounts: of all that may come, a peer's life shows in
// its own new datagrams alone.
func TestOnlyTheRightDatagramCounts(t *testing.T) {
	key := keyOf(1, 0)
	change := func(f func(*datagram)) []byte {
		d := beatFrom(8)
		f(&d)
		return signed(d, key)
	}
	flip := func(i int) []byte {
		b := signed(beatFrom(8), key)
		b[i] ^= 1
		return b
	}
	good := signed(beatFrom(8), key)
	bad := map[string][]byte{
		"nothing":              nil,
		"cut":                  good[:datagramSize-1],
		"too long":             append(bytes.Clone(good), 0),
		"replayed":             signed(beatFrom(7), key),
		"older":                signed(beatFrom(3), key),
		"another key":          signed(beatFrom(8), keyOf(2, 0)),
		"the other direction":  signed(beatFrom(8), keyOf(0, 1)),
		"its own, sent back":   signed(datagram{kind: kindBeat, interval: interval, epoch: 5, from: 0, to: 1, counter: 8, sent: 1}, keyOf(0, 1)),
		"another epoch":        change(func(d *datagram) { d.epoch = 6 }),
		"for another rank":     change(func(d *datagram) { d.to = 2 }),
		"from another rank":    change(func(d *datagram) { d.from = 2 }),
		"from no rank":         change(func(d *datagram) { d.from = 9 }),
		"unknown kind":         change(func(d *datagram) { d.kind = 3 }),
		"no interval":          change(func(d *datagram) { d.interval = 0 }),
		"a very long interval": change(func(d *datagram) { d.interval = 65 * time.Second }),
		"no counter":           change(func(d *datagram) { d.counter = 0 }),
		"forged goodbye":       signed(datagram{kind: kindGoodbye, interval: interval, epoch: 5, from: 1, counter: 8, sent: 1}, Key{}),
	}
	for i := range datagramSize {
		bad["flipped bit in byte "+string(rune('a'+i))] = flip(i)
	}
	m := idle(t)
	now := time.Now()
	m.now = func() time.Time { return now }
	begun := now
	m.take(signed(beatFrom(7), key))
	now = begun.Add(time.Second)
	before := m.Stats()
	require.True(t, before[0].Heard)
	for name, b := range bad {
		m.take(b)
		after := m.Stats()
		assert.Equal(t, begun, m.byRank[1].heard, name)
		assert.Equal(t, before[0].Received, after[0].Received, name)
		assert.False(t, after[0].Left, name)
		assert.False(t, after[1].Heard, name)
	}
	var refused uint64
	for _, s := range m.Stats() {
		refused += s.Refused
	}
	assert.EqualValues(t, len(bad), refused+m.Refused(), "each is counted")

	m.take(good)
	assert.Equal(t, begun.Add(time.Second), m.byRank[1].heard)
	m.take(signed(datagram{kind: kindGoodbye, interval: interval, epoch: 5, from: 1, counter: 9, sent: 1}, key))
	assert.True(t, m.Stats()[0].Left)
}

// TestNonsenseTimesOfAPeer: a peer may lie about times; that is not believed or
// does no harm.
func TestNonsenseTimesOfAPeer(t *testing.T) {
	m := idle(t)
	now := time.Now()
	m.now = func() time.Time { return now }
	for i, d := range []datagram{{echo: 1 << 63}, {echo: 1, held: 1 << 63}, {echo: 1, held: 1 << 40}, {counter: 1 << 62}, {counter: ^uint64(0) - 5}} {
		d.kind, d.interval, d.epoch, d.from, d.sent = kindBeat, maxInterval, 5, 1, ^uint64(0)
		d.counter += uint64(i) + 1
		now = now.Add(interval)
		m.take(signed(d, keyOf(1, 0)))
		s := m.Stats()[0]
		assert.Zero(t, s.RTT)
		assert.LessOrEqual(t, s.Bound, maxBound)
		assert.GreaterOrEqual(t, s.Bound, minBound)
	}
	assert.EqualValues(t, 5, m.Stats()[0].Received)
}

// FuzzDatagram: whatever comes, nothing panics; what is taken says the same when
// it is written again; what lacks the signature changes nothing.
func FuzzDatagram(f *testing.F) {
	f.Add(signed(beatFrom(1), keyOf(1, 0)))
	f.Add(signed(beatFrom(1), Key{}))
	f.Add([]byte("DSYh"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		m := idle(t)
		m.take(b)
		if m.byRank[1].received+m.byRank[2].received > 0 && !authentic(b, newMAC(keyOf(1, 0))) && !authentic(b, newMAC(keyOf(2, 0))) {
			t.Fatal("an unsigned datagram was taken")
		}
		// Signed, it gets past the first check.
		if d, ok := parse(b); ok {
			again := signed(d, keyOf(1, 0))
			if !bytes.Equal(again[:macOffset], b[:macOffset]) {
				t.Fatalf("%x became %x", b[:macOffset], again[:macOffset])
			}
			m.take(again)
			for _, s := range m.Stats() {
				if s.Bound < 0 || s.Bound > maxBound || s.RTT < 0 || s.Loss < 0 || s.Loss > 1 {
					t.Fatalf("%+v", s)
				}
			}
		}
	})
}

// BenchmarkDatagram is what one beat costs: made, signed, checked, taken.
func BenchmarkDatagram(b *testing.B) {
	m := idle(b)
	key := newMAC(keyOf(1, 0))
	var p [datagramSize]byte
	b.ReportAllocs()
	for i := range b.N {
		d := beatFrom(uint64(i) + 1)
		d.put(&p, key)
		m.take(p[:])
	}
}
