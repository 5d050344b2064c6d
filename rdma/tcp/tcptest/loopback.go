// Package tcptest connects ranks over 127.0.0.1, plain or with TLS: for tests
// and benchmarks, and for several ranks on one machine.
package tcptest

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"daisy/rdma"
	"daisy/rdma/tcp"
)

// Loopback returns the connected transports of all ranks, by rank. The caller
// closes them.
func Loopback(worldSize int, secure bool) ([]rdma.Transport, error) {
	conns, err := Conns(worldSize, secure)
	if err != nil {
		return nil, err
	}
	return Transports(conns, 1)
}

// Transports joins all ranks over the connections of Conns, which it takes
// over. On failure it closes whatever it has made.
func Transports(conns [][]net.Conn, epoch uint64) ([]rdma.Transport, error) {
	ts := make([]rdma.Transport, len(conns))
	errs := make([]error, len(conns))
	var wg sync.WaitGroup
	for r := range conns {
		wg.Go(func() { ts[r], errs[r] = tcp.New(r, len(conns), epoch, conns[r]) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			for _, t := range ts {
				if t != nil {
					t.Close()
				}
			}
			return nil, err
		}
	}
	return ts, nil
}

// Conns returns one connection per pair: conns[a][b] and conns[b][a] are its
// ends, and conns[a][a] is nil.
func Conns(worldSize int, secure bool) (conns [][]net.Conn, err error) {
	conns = make([][]net.Conn, worldSize)
	for r := range conns {
		conns[r] = make([]net.Conn, worldSize)
	}
	defer func() {
		if err == nil {
			return
		}
		for _, cs := range conns {
			for _, c := range cs {
				if c != nil {
					c.Close()
				}
			}
		}
	}()
	var client, server *tls.Config
	if secure {
		if client, server, err = Configs(); err != nil {
			return conns, err
		}
	}
	for a := range conns {
		for b := a + 1; b < worldSize; b++ {
			x, y, err := Pair()
			if err != nil {
				return conns, fmt.Errorf("connecting rank %d to rank %d: %w", a, b, err)
			}
			if secure {
				x, y = tls.Client(tcp.Wire(x), client), tls.Server(tcp.Wire(y), server)
			}
			conns[a][b], conns[b][a] = x, y
		}
	}
	return conns, nil
}

// Pair returns the two ends of a TCP connection over 127.0.0.1.
func Pair() (net.Conn, net.Conn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	// The kernel completes the connection before it is accepted.
	x, err := net.DialTimeout("tcp", l.Addr().String(), 10*time.Second)
	if err != nil {
		return nil, nil, err
	}
	y, err := l.Accept()
	if err != nil {
		x.Close()
		return nil, nil, err
	}
	return x, y, nil
}

// Configs makes TLS 1.3 configurations for two ends, with a fresh certificate
// that the client pins.
func Configs() (client, server *tls.Config, err error) {
	id, err := NewIdentity()
	if err != nil {
		return nil, nil, err
	}
	return id.Configs()
}

// An Identity is a certificate with its key that two processes may share, for
// instance as JSON in an environment variable.
type Identity struct {
	Certificate []byte // DER
	Key         []byte // PKCS #8
}

// NewIdentity makes a fresh one, good for a day.
func NewIdentity() (Identity, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Identity{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Identity{}, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	return Identity{der, pkcs8}, err
}

// Configs are the two ends' configurations: the server shows the certificate,
// the client takes no other.
func (id Identity) Configs() (client, server *tls.Config, err error) {
	leaf, err := x509.ParseCertificate(id.Certificate)
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(id.Key)
	if err != nil {
		return nil, nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	client = &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: "127.0.0.1",
		DynamicRecordSizingDisabled: true}
	server = &tls.Config{MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true,
		SessionTicketsDisabled: true,
		Certificates:           []tls.Certificate{{Certificate: [][]byte{id.Certificate}, PrivateKey: key}}}
	return client, server, nil
}
