package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// ErrWrongNode: the machine at that address holds another key than the one
// expected. Try another address; never talk to this one.
var ErrWrongNode = errors.New("another node answers at this address")

type certificate = tls.Certificate

// newCertificate makes the self-signed certificate that carries key. Its dates
// span all clocks.
func newCertificate(id ID, key ed25519.PrivateKey) (certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "daisy-" + string(id)},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return certificate{}, fmt.Errorf("making this node's certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return certificate{}, fmt.Errorf("making this node's certificate: %w", err)
	}
	return certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// PeerKey returns the key of who is at the other end of a finished handshake.
// TLS has then proved that it holds the private half.
func PeerKey(state tls.ConnectionState) (ed25519.PublicKey, error) {
	if len(state.PeerCertificates) != 1 {
		return nil, fmt.Errorf("the other side shows %d certificates, not one", len(state.PeerCertificates))
	}
	key, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("the other side's certificate carries a %T, not an Ed25519 key",
			state.PeerCertificates[0].PublicKey)
	}
	return key, nil
}

// PeerID is the ID that goes with PeerKey.
func PeerID(state tls.ConnectionState) (ID, error) {
	key, err := PeerKey(state)
	if err != nil {
		return "", err
	}
	return IDOf(key), nil
}

// ServerConfig accepts any node that proves a key, over one of the protocols
// named; who it may be is the caller's decision, by PeerID. It is the caller's
// to keep.
func (i *Identity) ServerConfig(protocols ...string) *tls.Config {
	config := i.config(protocols)
	config.ClientAuth = tls.RequireAnyClientCert
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if state.NegotiatedProtocol == "" {
			return errors.New("the other side names no protocol")
		}
		_, err := PeerID(state)
		return err
	}
	return config
}

// UnpinnedConfig accepts any node that proves a key and speaks protocol: for
// asking who answers at an address that a person gave. Nothing must be sent on
// such a connection.
func (i *Identity) UnpinnedConfig(protocol string) *tls.Config {
	config := i.config([]string{protocol})
	config.InsecureSkipVerify = true // as in ClientConfig; the caller reads PeerID
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if state.NegotiatedProtocol != protocol {
			return fmt.Errorf("the node does not speak %s", protocol)
		}
		_, err := PeerID(state)
		return err
	}
	return config
}

// ClientConfig accepts only the node expected, speaking protocol; any other
// node fails the handshake with ErrWrongNode.
func (i *Identity) ClientConfig(expected ID, protocol string) *tls.Config {
	config := i.config([]string{protocol})
	// There is no authority and no host name to verify; the key is everything,
	// and VerifyConnection checks it before anything is sent.
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		id, err := PeerID(state)
		if err != nil {
			return err
		}
		if id != expected {
			return fmt.Errorf("%w: %s, not %s", ErrWrongNode, id.Short(), expected.Short())
		}
		if state.NegotiatedProtocol != protocol {
			return fmt.Errorf("the node does not speak %s", protocol)
		}
		return nil
	}
	return config
}

func (i *Identity) config(protocols []string) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{i.certificate},
		NextProtos:   protocols,
		// Every connection proves its key afresh.
		SessionTicketsDisabled: true,
		// Short first records would cost latency after every pause in the data.
		DynamicRecordSizingDisabled: true,
	}
}
