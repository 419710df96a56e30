package wire

import "errors"

// The ways in which bytes from another machine can be refused. Errors of this package wrap one of them.
var (
	// ErrMalformed says that bytes are not an encoding of what they should be. Every *ValidationError is one too.
	ErrMalformed = errors.New("malformed message")
	// ErrTooLarge says that a message is above its limit in limits.go.
	ErrTooLarge = errors.New("message too large")
	// ErrSignature says that a signature is not the signer's over this payload in this domain.
	ErrSignature = errors.New("bad signature")
	// ErrNewerMajor says that a message needs a newer program to be understood.
	ErrNewerMajor = errors.New("written by a newer version of lightswarm")
	// ErrCIDMismatch says that bytes are not those that a CID names.
	ErrCIDMismatch = errors.New("content does not match its CID")
)

// ValidationError says which field of which message breaks which rule.
type ValidationError struct {
	Message string // message type in lower case, such as "release"
	Field   string // field in the spelling of the protobuf schema, such as "policy.digest"
	Why     string // the rule, such as "must be 32 bytes"
}

// Error reads "release: policy.digest must be 32 bytes".
func (e *ValidationError) Error() string { return e.Message + ": " + e.Field + " " + e.Why }

// Is makes every ValidationError an ErrMalformed.
func (e *ValidationError) Is(target error) bool { return target == ErrMalformed }
