package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLoadMakesOneKeyForEver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	first, err := Load(dir)
	require.NoError(t, err)
	second, err := Load(dir)
	require.NoError(t, err)
	assert.Equal(t, first.ID(), second.ID())

	id, err := ParseID(string(first.ID()))
	require.NoError(t, err)
	assert.Equal(t, first.ID(), id)

	info, err := os.Stat(filepath.Join(dir, KeyFile))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing but the key is left behind")
}

func TestLoadAtOnceAgrees(t *testing.T) {
	dir := t.TempDir()
	ids := make([]ID, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			if identity, err := Load(dir); assert.NoError(t, err) {
				ids[i] = identity.ID()
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		assert.Equal(t, ids[0], id)
	}
}

func TestLoadRefusesAndKeepsBadFiles(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(ec)
	require.NoError(t, err)
	wrongKind := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})

	dir := t.TempDir()
	_, err = Load(dir)
	require.NoError(t, err)
	good, err := os.ReadFile(filepath.Join(dir, KeyFile))
	require.NoError(t, err)

	for name, c := range map[string]struct {
		data []byte
		mode fs.FileMode
		says string
	}{
		"empty":            {nil, 0o600, "damaged"},
		"truncated":        {good[:len(good)/2], 0o600, "damaged"},
		"text after":       {append(good[:len(good):len(good)], "more"...), 0o600, "damaged"},
		"too long":         {append(good[:len(good):len(good)], make([]byte, maxKeyFile)...), 0o600, "longer than"},
		"no Ed25519 key":   {wrongKind, 0o600, "not an Ed25519 key"},
		"readable by all":  {good, 0o644, "chmod 600"},
		"writable by team": {good, 0o620, "chmod 600"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, KeyFile)
			require.NoError(t, os.WriteFile(path, c.data, c.mode))
			require.NoError(t, os.Chmod(path, c.mode))
			_, err := Load(dir)
			require.ErrorContains(t, err, c.says)
			assert.ErrorContains(t, err, path)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(c.data), string(after))
		})
	}
	t.Run("a folder", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, KeyFile), 0o700))
		_, err := Load(dir)
		require.Error(t, err)
	})
}

func TestParseID(t *testing.T) {
	good := string(IDOf(make(ed25519.PublicKey, ed25519.PublicKeySize)))
	for _, bad := range []string{"", "a", good + "a", strings.ToUpper(good), good[:IDLen-1] + "1", good[:IDLen-1] + "b", strings.Repeat("é", IDLen/2)} {
		_, err := ParseID(bad)
		assert.Error(t, err, bad)
	}
}

// handshake runs both sides over loopback and returns what each side says.
func handshake(t *testing.T, server, client *tls.Config) (state tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	b, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	a, err := l.Accept()
	require.NoError(t, err)
	deadline := time.Now().Add(5 * time.Second)
	require.NoError(t, a.SetDeadline(deadline))
	require.NoError(t, b.SetDeadline(deadline))
	s, c := tls.Server(a, server), tls.Client(b, client)
	done := make(chan error, 1)
	go func() {
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte{1})
		}
		a.Close()
		done <- err
	}()
	clientErr = c.Handshake()
	if clientErr == nil {
		// In TLS 1.3 the server may still refuse after the client is done.
		_, clientErr = c.Read(make([]byte, 1))
	}
	b.Close()
	serverErr = <-done
	return s.ConnectionState(), serverErr, clientErr
}

func load(t *testing.T) *Identity {
	t.Helper()
	identity, err := Load(t.TempDir())
	require.NoError(t, err)
	return identity
}

func TestTLSKnowsBothSides(t *testing.T) {
	server, client := load(t), load(t)
	state, serverErr, clientErr := handshake(t, server.ServerConfig("h2", "x/1"), client.ClientConfig(server.ID(), "x/1"))
	require.NoError(t, serverErr)
	require.NoError(t, clientErr)
	id, err := PeerID(state)
	require.NoError(t, err)
	assert.Equal(t, client.ID(), id)
	assert.Equal(t, "x/1", state.NegotiatedProtocol)
	assert.EqualValues(t, tls.VersionTLS13, state.Version)
}

func TestTLSRefuses(t *testing.T) {
	server, client, other := load(t), load(t), load(t)
	t.Run("another node", func(t *testing.T) {
		_, serverErr, clientErr := handshake(t, other.ServerConfig("h2"), client.ClientConfig(server.ID(), "h2"))
		require.ErrorIs(t, clientErr, ErrWrongNode)
		require.Error(t, serverErr)
	})
	t.Run("no certificate", func(t *testing.T) {
		config := client.ClientConfig(server.ID(), "h2")
		config.Certificates = nil
		_, serverErr, clientErr := handshake(t, server.ServerConfig("h2"), config)
		require.Error(t, serverErr)
		require.Error(t, clientErr)
	})
	t.Run("unknown protocol", func(t *testing.T) {
		_, serverErr, clientErr := handshake(t, server.ServerConfig("h2"), client.ClientConfig(server.ID(), "spdy"))
		require.Error(t, serverErr)
		require.Error(t, clientErr)
	})
	t.Run("no protocol", func(t *testing.T) {
		config := client.ClientConfig(server.ID(), "h2")
		config.NextProtos = nil
		_, serverErr, _ := handshake(t, server.ServerConfig("h2"), config)
		require.Error(t, serverErr)
	})
	t.Run("TLS 1.2", func(t *testing.T) {
		config := client.ClientConfig(server.ID(), "h2")
		config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		_, serverErr, _ := handshake(t, server.ServerConfig("h2"), config)
		require.Error(t, serverErr)
	})
	t.Run("a borrowed certificate", func(t *testing.T) {
		// The impostor shows the server's certificate without its key.
		config := other.ServerConfig("h2")
		config.Certificates = []tls.Certificate{{
			Certificate: server.certificate.Certificate, PrivateKey: other.key,
		}}
		_, _, clientErr := handshake(t, config, client.ClientConfig(server.ID(), "h2"))
		require.Error(t, clientErr)
	})
	t.Run("an ECDSA key", func(t *testing.T) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		template := &x509.Certificate{SerialNumber: big.NewInt(1)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		require.NoError(t, err)
		config := client.ClientConfig(server.ID(), "h2")
		config.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
		_, serverErr, _ := handshake(t, server.ServerConfig("h2"), config)
		require.ErrorContains(t, serverErr, "not an Ed25519 key")
	})
}
