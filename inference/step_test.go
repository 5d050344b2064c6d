package inference

import (
	"testing"

	"daisy/inference/model"

	"github.com/stretchr/testify/require"
)

// send passes a step over the wire form.
func send(t testing.TB, s *step, slots int) *step {
	t.Helper()
	var head [headBytes]byte
	payload := s.encode(head[:], nil)
	var got step
	rest, err := got.decodeHead(head[:], slots)
	require.NoError(t, err)
	if rest == 0 {
		payload = head[headFixed:]
	} else {
		require.Len(t, payload, rest)
	}
	got.decodePayload(payload)
	return &got
}

func TestStepRoundTrip(t *testing.T) {
	small := &step{runs: []model.Run{{Slot: 1, Start: 7, N: 1, KV: 256}}, tokens: []int32{42}, outputs: []int32{0}}
	require.True(t, small.inHead())
	require.Equal(t, small, send(t, small, 2))

	large := &step{runs: []model.Run{{N: maxBatch - 1, KV: 512}, {Slot: 3, Start: 9, N: 1, KV: 256}},
		tokens: make([]int32, maxBatch), outputs: []int32{maxBatch - 2, maxBatch - 1}}
	for i := range large.tokens {
		large.tokens[i] = int32(i * 3)
	}
	require.False(t, large.inHead())
	require.Equal(t, large, send(t, large, 4))
}

func TestStepFromAStrangerIsChecked(t *testing.T) {
	good := func() *step {
		return &step{runs: []model.Run{{Slot: 1, Start: 7, N: 2, KV: 256}}, tokens: []int32{4, 5}, outputs: []int32{1}}
	}
	check := func(s *step) error { return s.check(2, 512, 100, 2) }
	require.NoError(t, check(good()))
	for name, spoil := range map[string]func(s *step){
		"slot":           func(s *step) { s.runs[0].Slot = 2 },
		"negative slot":  func(s *step) { s.runs[0].Slot = -1 },
		"start":          func(s *step) { s.runs[0].Start = 511 },
		"negative start": func(s *step) { s.runs[0].Start = -1 },
		"count":          func(s *step) { s.runs[0].N = 3 },
		"no tokens":      func(s *step) { s.runs[0].N = 0 },
		"short KV":       func(s *step) { s.runs[0].KV = 8 },
		"long KV":        func(s *step) { s.runs[0].KV = 513 },
		"token":          func(s *step) { s.tokens[1] = 100 },
		"negative token": func(s *step) { s.tokens[1] = -1 },
		"output":         func(s *step) { s.outputs[0] = 2 },
		"output order":   func(s *step) { s.outputs = []int32{1, 0} },
		"outputs":        func(s *step) { s.outputs = []int32{0, 0, 1} },
	} {
		s := good()
		spoil(s)
		require.Error(t, check(s), name)
	}
}

func TestCopyFromAStrangerIsChecked(t *testing.T) {
	var head [headBytes]byte
	want := prefixCopy{from: 1, to: 2, tokens: 40}
	want.encode(head[:])
	got, err := decodeCopy(head[:], 3, 64)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, bad := range []prefixCopy{{3, 1, 4}, {1, 3, 4}, {1, 1, 4}, {0, 1, 65}, {-1, 1, 4}} {
		bad.encode(head[:])
		_, err := decodeCopy(head[:], 3, 64)
		require.Error(t, err, "%+v", bad)
	}
}

// Whatever comes over the wire is refused or within bounds, and then safe.
func FuzzStep(f *testing.F) {
	var head [headBytes]byte
	s := &step{runs: []model.Run{{Slot: 1, Start: 7, N: 1, KV: 256}}, tokens: []int32{42}, outputs: []int32{0}}
	s.encode(head[:], nil)
	f.Add(head[:])
	f.Add(make([]byte, headBytes))
	f.Add(append([]byte{kindFinish}, make([]byte, headBytes)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headBytes {
			return
		}
		var s step
		rest, err := s.decodeHead(b[:headBytes], 4)
		if err != nil {
			return
		}
		payload := b[headFixed:headBytes]
		if rest > 0 {
			if len(b)-headBytes < rest {
				return
			}
			payload = b[headBytes:]
		}
		s.decodePayload(payload)
		if s.check(4, 1024, 1000, 4) == nil {
			require.LessOrEqual(t, len(s.tokens), maxBatch)
			require.Equal(t, &s, send(t, &s, 4))
		}
	})
}
