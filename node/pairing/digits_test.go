package pairing

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The digits of fixed inputs: another implementation of docs/pairing.md must get
// the same (these were computed in Python with hashlib).
func TestKnownDigits(t *testing.T) {
	key := func(b byte) []byte {
		k := make([]byte, 32)
		for i := range k {
			k[i] = b
		}
		return k
	}
	first := party{key: key(1), name: "Study", nonce: hash(key(3))}
	second := party{key: key(2), name: "Kitchen", nonce: hash(key(4))}
	first.commitment = commit(initiator, first.key, second.key, first.name, first.nonce)
	second.commitment = commit(responder, second.key, first.key, second.name, second.nonce)
	text, err := first.commitment.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, "0b964a65e06321e1733e0a9ecbdb8b7b428f841b04c503200327493fc8e44aa7", string(text))
	assert.Equal(t, "681131", digits(first, second))
}

// Everything said changes the digits.
func TestDigitsDependOnAll(t *testing.T) {
	base := [2]party{
		{key: make([]byte, 32), name: "ab", commitment: hash{1}, nonce: hash{2}},
		{key: make([]byte, 32), name: "c", commitment: hash{3}, nonce: hash{4}},
	}
	seen := map[string]string{digits(base[0], base[1]): "base"}
	note := func(what string, p [2]party) {
		d := digits(p[0], p[1])
		assert.Empty(t, seen[d], "%s gives the digits of %s", what, seen[d])
		seen[d] = what
	}
	for side := range 2 {
		p := base
		p[side].key = append(make([]byte, 31), 9)
		note("key", p)
		p = base
		p[side].name += "x"
		note("name", p)
		p = base
		p[side].commitment[31]++
		note("commitment", p)
		p = base
		p[side].nonce[31]++
		note("nonce", p)
	}
	note("roles", [2]party{base[1], base[0]})
	moved := base
	moved[0].name, moved[1].name = "a", "bc" // the same letters in a row
	note("moved letters", moved)
}

// Words beyond the greatest multiple of a million would favour small numbers.
func TestNoBias(t *testing.T) {
	words := func(w ...uint64) (h hash) {
		for i, v := range w {
			binary.BigEndian.PutUint64(h[8*i:], v)
		}
		return h
	}
	const last = math.MaxUint64 - 551_616 // 2^64 = …709 551 616
	require.Zero(t, (uint64(last)+1)%1_000_000)
	assert.Equal(t, "999999", sixOf(words(last)))
	assert.Equal(t, "000007", sixOf(words(last+1, 7)), "refused, so the next word counts")
	assert.Equal(t, "000042", sixOf(words(math.MaxUint64, last+1, math.MaxUint64, 42)))
	all := words(math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64)
	assert.Equal(t, sixOf(hashOf([]byte(againDomain), all[:])), sixOf(all))
	assert.Equal(t, "000000", sixOf(hash{}))

	// Each first digit is as frequent as any other.
	var count [10]int
	const n = 20000
	for i := range n {
		h := hashOf(binary.BigEndian.AppendUint32(nil, uint32(i)))
		count[sixOf(h)[0]-'0']++
	}
	for d, c := range count {
		assert.InDelta(t, n/10, c, 5*45, "digit %d", d) // five standard deviations
	}
}
