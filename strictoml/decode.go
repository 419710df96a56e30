package strictoml

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Error says what is wrong with a text.
type Error struct {
	// Line is counted from 1; 0 if it is not known.
	Line int
	Why  string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Why
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Why)
}

// Decode reads text into v, a pointer to a struct, and returns the line of each field and table: "reward.min",
// "split[1].name", "split[1]". A field that v lacks is an error, which is an *Error.
func Decode(text []byte, v any) (lines map[string]int, err error) {
	decoder := toml.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		var unknown *toml.StrictMissingError
		var wrong *toml.DecodeError
		switch {
		case errors.As(err, &unknown) && len(unknown.Errors) > 0:
			line, _ := unknown.Errors[0].Position()
			return nil, &Error{line, fmt.Sprintf("there is no field %s: look at its spelling, and at the table that it is in", strings.Join(unknown.Errors[0].Key(), "."))}
		case errors.As(err, &wrong):
			line, _ := wrong.Position()
			return nil, &Error{line, strings.TrimPrefix(wrong.Error(), "toml: ")}
		}
		return nil, &Error{Why: strings.TrimPrefix(err.Error(), "toml: ")}
	}
	return fieldLines(text), nil
}
