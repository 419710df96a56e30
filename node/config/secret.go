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
	key, err := DecodeIdentity(data)
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

// DecodeIdentity reads what EncodeIdentity wrote.
func DecodeIdentity(data []byte) (ed25519.PrivateKey, error) {
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

// Token reads the local API's bearer token, 64 hexadecimal digits, and creates it if there is none.
func (f *Folder) Token() (string, error) {
	token, err := f.ReadToken()
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	random := make([]byte, tokenBytes)
	rand.Read(random)
	if err := createFile(f.TokenFile(), []byte(hex.EncodeToString(random)+"\n"), 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("create API token: %w", err)
	}
	return f.ReadToken()
}

// ReadToken reads the token that Token created.
func (f *Folder) ReadToken() (string, error) {
	data, err := readSecret(f.TokenFile())
	if err != nil {
		return "", fmt.Errorf("read API token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if raw, err := hex.DecodeString(token); err != nil || len(raw) != tokenBytes {
		return "", fmt.Errorf("damaged API token in %s: delete it and start the node again", f.TokenFile())
	}
	return token, nil
}
