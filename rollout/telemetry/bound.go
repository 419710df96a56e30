package telemetry

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// errParts is what a body is told that would take too much memory.
var errParts = &Fault{Status: 413, Message: fmt.Sprintf("the export has more than %d parts, or they nest deeper than %d; export fewer spans at once", maxParts, maxDepth)}

// countWire walks a message in protobuf's form, without keeping anything of it, and refuses one of too many parts: a part
// is a message inside it or an element of a list, which may be two bytes long and take hundreds in memory.
func countWire(m protoreflect.MessageDescriptor, b []byte) error {
	left := maxParts
	return walkWire(m, b, &left, maxDepth)
}

func walkWire(m protoreflect.MessageDescriptor, b []byte, left *int, depth int) error {
	if depth == 0 {
		return errParts
	}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		n = protowire.ConsumeFieldValue(number, kind, b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		value := b[:n]
		b = b[n:]
		field := m.Fields().ByNumber(number)
		if field == nil {
			continue
		}
		if field.IsList() || field.Message() != nil {
			if *left--; *left < 0 {
				return errParts
			}
		}
		if field.Message() != nil && kind == protowire.BytesType {
			inside, _ := protowire.ConsumeBytes(value)
			if err := walkWire(field.Message(), inside, left, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// countJSON does the same for JSON. What is no JSON is for the decoder to refuse.
func countJSON(b []byte) error {
	parts, depth, quoted := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			parts++
		case c == ',':
			parts++
		case c == '}' || c == ']':
			depth--
		}
		// A level of OTLP is an object and the list that it is in.
		if parts > 4*maxParts || depth > 2*maxDepth {
			return errParts
		}
	}
	if quoted {
		return errors.New("a text does not end")
	}
	return nil
}
