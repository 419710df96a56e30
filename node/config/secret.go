package config

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Identity reads the peer's private key and creates it if there is none. A crash in between leaves no key or a whole
// one.
func (f *Folder) Identity() (ed25519.PrivateKey, error) {
	key, err := f.readIdentity()
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	_, key, err = ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create identity: %w", err)
	}
	data, err := EncodeIdentity(key)
	if err != nil {
		return nil, err
	}
	if err := createFile(f.IdentityFile(), data, 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create identity: %w", err)
	}
	// Read it back: another process may have been first.
	return f.readIdentity()
}

func (f *Folder) readIdentity() (ed25519.PrivateKey, error) {
	data, err := readSecret(f.IdentityFile())
	if err != nil {
		return nil, fmt.Errorf("read identity: %w", err)
	}
	key, err := decodeIdentity(data)
	if err != nil {
		return nil, fmt.Errorf("read identity %s: %w", f.IdentityFile(), err)
	}
	return key, nil
}

const pemType = "PRIVATE KEY"

// EncodeIdentity writes key as PKCS #8 in PEM.
func EncodeIdentity(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode identity: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// decodeIdentity reads what EncodeIdentity wrote.
func decodeIdentity(data []byte) (ed25519.PrivateKey, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != pemType || strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("not a PEM file with one PRIVATE KEY; restore it from a backup")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("damaged private key; restore it from a backup: %w", err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the private key is a %T; a peer's is ed25519", parsed)
	}
	return key, nil
}

// tokenBytes is the entropy of the local API's token.
const tokenBytes = 32

// NewToken is a new secret, 64 hexadecimal digits.
func NewToken() string {
	random := make([]byte, tokenBytes)
	rand.Read(random) // never fails
	return hex.EncodeToString(random)
}

// Token reads the local API's bearer token, 64 hexadecimal digits, and creates it if there is none.
func (f *Folder) Token() (string, error) { return token(f.tokenFile(), "API token") }

// ReadToken reads the token that Token created.
func (f *Folder) ReadToken() (string, error) { return readToken(f.tokenFile(), "API token") }

// LightningKey reads the key that Agent Lightning's runners have to know, 64 hexadecimal digits, and creates it if there is
// none.
func (f *Folder) LightningKey() (string, error) { return token(f.lightningKeyFile(), "runners' key") }

// token reads the secret in a file, and creates it if there is none.
func token(file, what string) (string, error) {
	secret, err := readToken(file, what)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := createFile(file, []byte(NewToken()+"\n"), 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("create %s: %w", what, err)
	}
	return readToken(file, what)
}

func readToken(file, what string) (string, error) {
	data, err := readSecret(file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	secret := strings.TrimSpace(string(data))
	if raw, err := hex.DecodeString(secret); err != nil || len(raw) != tokenBytes {
		return "", fmt.Errorf("damaged %s in %s: delete it and start the node again", what, file)
	}
	return secret, nil
}
