package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// raw builds headers that Write refuses to write.
type raw struct{ bytes.Buffer }

func header(version uint32, nTensors, nKeys uint64) *raw {
	r := &raw{}
	r.WriteString("GGUF")
	return r.put(version, nTensors, nKeys)
}

// put appends little-endian integers, and strings with their length.
func (r *raw) put(vs ...any) *raw {
	for _, v := range vs {
		if s, ok := v.(string); ok {
			r.put(uint64(len(s)))
			r.WriteString(s)
			continue
		}
		_ = binary.Write(&r.Buffer, binary.LittleEndian, v)
	}
	return r
}

func (r *raw) zeros(n int) *raw { r.Write(make([]byte, n)); return r }

func oneKey(vs ...any) *raw { return header(3, 0, 1).put(vs...) }

func oneTensor(dims uint32, vs ...any) *raw {
	return header(3, 1, 0).put("t", dims).put(vs...)
}

const u1 = uint64(1)

var malformed = []struct {
	name string
	b    *raw
	want string
}{
	{"empty", &raw{}, "not a GGUF file"},
	{"short", (&raw{}).put(uint16(0x4747)), "not a GGUF file"},
	{"other magic", (&raw{}).put(uint32(0x04034b50), u1, u1), "not a GGUF file"},
	{"magic only", (&raw{}).put([]byte("GGUF")), "truncated"},
	{"version 1", header(1, 0, 0), "version 1 is not supported"},
	{"version 4", header(4, 0, 0), "version 4 is not supported"},
	{"big endian", header(3<<24, 0, 0), "big-endian"},
	{"no counts", (&raw{}).put([]byte("GGUF"), uint32(3), uint32(0)), "truncated"},
	{"absurd tensors", header(3, math.MaxUint64, 0), "claims 18446744073709551615 tensors"},
	{"more tensors than bytes", header(3, MaxTensors, 0), "truncated"},
	{"absurd keys", header(3, 0, 1<<40), "metadata keys, at most"},
	{"more keys than bytes", header(3, 0, MaxKeys), "truncated"},
	{"key length", oneKey(uint64(math.MaxUint64), uint64(0)), "a metadata key claims a length of"},
	{"key longer than file", oneKey(uint64(60000), uint64(0)), "truncated"},
	{"empty key", oneKey("", kindUint8, uint8(1)), "key is empty"},
	{"double key", header(3, 0, 2).put("k", kindUint8, uint8(1), "k", kindUint8, uint8(1)), `key "k" is there twice`},
	{"value type", oneKey("key", uint32(13), u1), `"key" has unknown value type 13`},
	{"boolean", oneKey("key", kindBool, uint8(2)), "boolean value 2"},
	{"value cut", oneKey("key", kindUint64, uint16(0)), "truncated"},
	{"string length", oneKey("key", kindString, uint64(1<<50)), "claims a length of"},
	{"string longer than file", oneKey("key", kindString, uint64(1<<20)), "truncated"},
	{"array length", oneKey("key", kindArray, kindUint8, uint64(1<<60)), "claims 1152921504606846976 elements"},
	{"array longer than file", oneKey("key", kindArray, kindFloat64, uint64(MaxArray)), "truncated"},
	{"strings longer than file", oneKey("key", kindArray, kindString, uint64(MaxArray)), "truncated"},
	{"string in array", oneKey("key", kindArray, kindString, u1, uint64(1<<62)), "a string in key claims a length"},
	{"boolean array", oneKey("key", kindArray, kindBool, u1, uint8(9)), "boolean value 9"},
	{"nested array", oneKey("key", kindArray, kindArray, u1, kindUint8, u1, uint8(1)), "array of arrays"},
	{"array type", oneKey("key", kindArray, uint32(99), u1, u1), "array of unknown type 99"},
	{"alignment zero", oneKey("general.alignment", kindUint32, uint32(0)), "general.alignment is 0"},
	{"alignment odd", oneKey("general.alignment", kindUint32, uint32(48)), "general.alignment is 48"},
	{"alignment absurd", oneKey("general.alignment", kindUint32, uint32(1<<31)), "general.alignment is 2147483648"},
	{"alignment text", oneKey("general.alignment", kindString, "32"), "general.alignment is 32"},
	{"no dimensions", oneTensor(0, uint32(0), uint64(0)).zeros(64), "0 dimensions"},
	{"five dimensions", oneTensor(5, u1, u1, u1, u1, u1, uint32(0), uint64(0)).zeros(64), "5 dimensions"},
	{"zero dimension", oneTensor(2, u1, uint64(0), uint32(0), uint64(0)).zeros(64), "dimension of 0"},
	{"negative dimension", oneTensor(1, uint64(math.MaxUint64), uint32(0), uint64(0)).zeros(64), "dimension of"},
	{"shape overflow", oneTensor(4, uint64(1<<31), uint64(1<<31), uint64(1<<31), uint64(4), uint32(0), uint64(0)).zeros(64), "absurd shape"},
	{"unknown type", oneTensor(1, u1, uint32(4), uint64(0)).zeros(64), "unknown type 4"},
	{"type beyond table", oneTensor(1, u1, uint32(math.MaxUint32), uint64(0)).zeros(64), "unknown type"},
	{"half a block", oneTensor(1, uint64(48), uint32(Q4_0), uint64(0)).zeros(64), "not whole blocks of q4_0"},
	{"unaligned", oneTensor(1, u1, uint32(F32), uint64(8)).zeros(99), "not a multiple of the alignment"},
	{"absurd offset", oneTensor(1, u1, uint32(F32), uint64(math.MaxUint64-31)).zeros(64), "absurd offset"},
	{"offset beyond file", oneTensor(1, u1, uint32(F32), uint64(1<<40)).zeros(64), "truncated"},
	{"data cut", oneTensor(1, uint64(1000), uint32(F32), uint64(0)).zeros(64), "needs 4000 bytes"},
	{"name length", header(3, 1, 0).put(uint64(1 << 33)).zeros(64), "a tensor name claims a length"},
	{"no name", header(3, 1, 0).put("", uint32(1), u1, uint32(0), uint64(0)).zeros(64), "has no name"},
	{"double tensor", header(3, 2, 0).put("t", uint32(1), u1, uint32(0), uint64(0), "t", uint32(1), u1, uint32(0), uint64(32)).zeros(99), `"t" is listed twice`},
	{"overlap", header(3, 2, 0).put("t", uint32(1), uint64(16), uint32(0), uint64(0), "u", uint32(1), u1, uint32(0), uint64(32)).zeros(99), `"t" and "u" overlap`},
}

func TestMalformedFilesGiveOneLine(t *testing.T) {
	dir := t.TempDir()
	for _, c := range malformed {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, dir, strings.ReplaceAll(c.name, " ", "-"), c.b.Bytes())
			f, err := Open(path)
			require.Error(t, err)
			assert.Nil(t, f)
			assert.ErrorContains(t, err, c.want)
			assert.True(t, strings.HasPrefix(err.Error(), path+": "), err.Error())
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestEveryTruncationIsAnError(t *testing.T) {
	b := encode(t, sampleKV(), sampleTensors())
	last := len(b) - DefaultAlignment + 48%DefaultAlignment // the padding after the last tensor may be missing
	for n := range last {
		_, err := parseBytes(b[:n])
		if n < 4 {
			require.EqualError(t, err, "not a GGUF file")
		} else {
			require.ErrorContains(t, err, "truncated", "cut at %d", n)
		}
	}
	_, err := parseBytes(b[:last])
	require.NoError(t, err)
}

func TestVersion2IsRead(t *testing.T) {
	b := encode(t, sampleKV(), sampleTensors())
	b[4] = 2
	f, err := parseBytes(b)
	require.NoError(t, err)
	assert.Equal(t, 2, f.Version())
}

// Values that are each allowed may together ask for too much; the budget must stop them before memory is taken.
func TestMemoryOfAHeaderIsBounded(t *testing.T) {
	const budget, value, values = 8 << 20, 2 << 20, 5
	r := header(3, 0, values)
	for i := range values {
		r.put(string(rune('a'+i)), kindString, uint64(value)).zeros(value)
	}
	p := newParser(bytes.NewReader(r.Bytes()), int64(r.Len()))
	p.budget = budget
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := p.file()
	runtime.ReadMemStats(&after)
	assert.ErrorContains(t, err, "MiB of memory")
	assert.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(budget+(64<<10)))
}

// An array of strings is charged for its elements before the first is read.
func TestMemoryOfStringArraysIsCharged(t *testing.T) {
	p := newParser(bytes.NewReader(nil), 1<<40)
	p.budget = 16*MaxArray - 1
	assert.Nil(t, list(p, MaxArray, 8, 16, func() string { t.Error("read"); return "" }))
	assert.ErrorContains(t, p.err, "MiB of memory")
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(dir)
	assert.EqualError(t, err, dir+": not a regular file")
	path := filepath.Join(dir, "absent.gguf")
	_, err = Open(path)
	assert.EqualError(t, err, path+": no such file or directory")
}

type failingReader struct{ err error }

func (r failingReader) ReadAt([]byte, int64) (int, error) { return 0, r.err }

func TestReadErrorsAreReported(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := Parse(failingReader{broken}, 1000)
	assert.ErrorIs(t, err, broken)
	_, err = Parse(bytes.NewReader([]byte("GGUF")), 1<<40) // the size promised more than there is
	assert.ErrorContains(t, err, "truncated")
	_, err = Parse(bytes.NewReader(nil), -1)
	assert.Error(t, err)
}

func TestWriteRefusesWhatCannotBeRead(t *testing.T) {
	var b bytes.Buffer
	assert.Error(t, Write(&b, []KV{{"k", 1}}, nil), "plain int has no stated size")
	assert.Error(t, Write(&b, []KV{{"general.alignment", uint32(3)}}, nil))
	assert.Error(t, Write(&b, nil, []TensorData{{"t", []int64{2}, F32, seq(4)}}))
	assert.Error(t, Write(&b, nil, []TensorData{{"t", []int64{0}, F32, nil}}))
	assert.Error(t, Write(failingWriter{}, sampleKV(), nil))
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("full") }
