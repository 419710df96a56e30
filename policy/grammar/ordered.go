package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// members are a JSON object in its order. JSON decodes to members, []any, string, json.Number, bool and nil.
type members []member

type member struct {
	name  string
	value any
}

// get is the member of a name.
func (m members) get(name string) (value any, ok bool) {
	for _, member := range m {
		if member.name == name {
			return member.value, true
		}
	}
	return nil, false
}

// maxNesting bounds how deeply a schema nests.
const maxNesting = 64

// decode reads JSON in its order.
func decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeValue(d, maxNesting)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows it")
	}
	return v, nil
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	open, nests := t.(json.Delim)
	if !nests {
		return t, nil
	}
	if depth == 0 {
		return nil, fmt.Errorf("it nests deeper than %d", maxNesting)
	}
	list, object := []any{}, members{}
	for d.More() {
		var name string
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, _ = key.(string)
			if _, twice := object.get(name); twice {
				return nil, fmt.Errorf("%q is there twice", clip(name))
			}
		}
		v, err := decodeValue(d, depth-1)
		if err != nil {
			return nil, err
		}
		list, object = append(list, v), append(object, member{name, v})
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if open == '{' {
		return object, nil
	}
	return list, nil
}

// compact is a value as JSON without white space.
func compact(v any) string {
	switch v := v.(type) {
	case members:
		parts := make([]string, len(v))
		for i, m := range v {
			parts[i] = quote(m.name) + ":" + compact(m.value)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = compact(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		return quote(v)
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return "null"
}

// clip shortens what is from outside before it enters an error.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
