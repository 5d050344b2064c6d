package discovery

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// FuzzPacket: whatever arrives, what is kept obeys the limits, and its TXT
// record survives being written and read again.
func FuzzPacket(f *testing.F) {
	a := Announcement{ID: newID(f), Name: "Studio ✿", Protocol: 1}
	good := response(f, a, "127.0.0.1", nil)
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add(response(f, a, "127.0.0.1", func(m *dnsmessage.Message) { m.Answers[0].Header.TTL = 0 }))
	f.Add(response(f, a, "127.0.0.1", func(m *dnsmessage.Message) {
		m.Additionals = append(m.Additionals, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: m.Answers[1].Header.Name, Class: dnsmessage.ClassINET},
			Body:   &dnsmessage.UnknownResource{Type: 47, Data: []byte{0xc0, 0x0c}},
		})
	}))
	question, err := query()
	require.NoError(f, err)
	f.Add(question)
	// A name that points at itself.
	f.Add([]byte{0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0xc0, 0x0c, 0, 12, 0, 1, 0, 0, 0, 1, 0, 2, 0xc0, 0x0c})
	f.Fuzz(func(t *testing.T, packet []byte) {
		isAbout(packet, a.ID)
		found, err := parsePacket(packet)
		if err != nil {
			require.Empty(t, found)
			return
		}
		require.LessOrEqual(t, len(found), maxInstances)
		for _, h := range found {
			if h.goodbye {
				continue
			}
			assert.NotZero(t, h.port)
			assert.NotEmpty(t, h.ips)
			assert.LessOrEqual(t, len(h.ips), maxAddresses)
			again, err := parseTXT(txtRecord(h.Announcement))
			require.NoError(t, err)
			assert.Equal(t, h.Announcement, again)
		}
	})
}

// FuzzCleanName: a clean name is short, stays as it is, and can be announced.
func FuzzCleanName(f *testing.F) {
	for _, seed := range []string{"", "a", "Ann’s Mac", " \t\x00\xff", "a\u202eb", string(make([]byte, 300)), "ééééééééééééééééééééééééééééééééééééé", "%41\\065"} {
		f.Add(seed)
	}
	id := newID(f)
	f.Fuzz(func(t *testing.T, name string) {
		clean := CleanName(name)
		require.LessOrEqual(t, len(clean), maxName)
		require.Equal(t, clean, CleanName(clean))
		if clean == "" {
			return
		}
		txt := txtRecord(Announcement{ID: id, Name: clean, Protocol: 1})
		for _, s := range txt {
			require.LessOrEqual(t, len(s), 255)
		}
		a, err := parseTXT(txt)
		require.NoError(t, err)
		require.Equal(t, clean, a.Name)
	})
}
