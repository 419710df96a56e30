package gateway

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestConforms(t *testing.T) {
	const (
		person = `{"$schema":"x","title":"Person","type":"object","properties":{"name":{"type":"string","description":"d","minLength":1},"age":{"type":["integer","null"],"minimum":0,"exclusiveMaximum":200}},"required":["name","age"],"additionalProperties":false}`
		list   = `{"type":"array","items":{"$ref":"#/$defs/item"},"minItems":1,"maxItems":2,"$defs":{"item":{"anyOf":[{"type":"number"},{"enum":["a",null]},{"const":[1]}]}}}`
		tree   = `{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":{"type":"boolean"}}`
	)
	for name, c := range map[string]struct {
		schema, text string
		want         string // yes, no, or unchecked
	}{
		"a person":              {person, ` {"age": 7, "name": "Ann"} `, "yes"},
		"an ageless person":     {person, `{"name":"Ann","age":null}`, "yes"},
		"no JSON":               {person, `Ann`, "no"},
		"two values":            {person, `{"name":"Ann","age":1}{}`, "no"},
		"something lacks":       {person, `{"name":"Ann"}`, "no"},
		"something more":        {person, `{"name":"Ann","age":1,"x":1}`, "no"},
		"a fraction":            {person, `{"name":"Ann","age":1.5}`, "no"},
		"a whole number":        {person, `{"name":"Ann","age":1.0}`, "yes"},
		"too low":               {person, `{"name":"Ann","age":-1}`, "no"},
		"just too high":         {person, `{"name":"Ann","age":200}`, "no"},
		"too short":             {person, `{"name":"","age":1}`, "no"},
		"another type":          {person, `[]`, "no"},
		"a list":                {list, `["a",1.5]`, "yes"},
		"a list of a list":      {list, `[[1]]`, "yes"},
		"an empty list":         {list, `[]`, "no"},
		"a long list":           {list, `[1,2,3]`, "no"},
		"a wrong item":          {list, `["b"]`, "no"},
		"a tree":                {tree, `{"next":{"next":{"leaf":true}}}`, "yes"},
		"a tree with a flaw":    {tree, `{"next":{"next":{"leaf":1}}}`, "no"},
		"anything":              {`true`, `1`, "yes"},
		"nothing":               {`false`, `1`, "no"},
		"all of":                {`{"allOf":[{"minimum":1},{"maximum":3}]}`, `2`, "yes"},
		"not all of":            {`{"allOf":[{"minimum":1},{"maximum":3}]}`, `4`, "no"},
		"bounds of other types": {`{"minimum":1,"minLength":5,"minItems":2,"maxProperties":0,"required":["x"]}`, `true`, "yes"},
		"an endless schema":     {`{"$ref":"#"}`, `1`, "unchecked"},
		"an endless choice":     {`{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}`, `1`, "unchecked"},
		"an escaped reference":  {`{"$ref":"#/$defs/a%20b","$defs":{"a b":{"type":"null"}}}`, `null`, "yes"},
		"a missing definition":  {`{"$ref":"#/$defs/x"}`, `1`, "unchecked"},
		"another document":      {`{"$ref":"http://x/y"}`, `1`, "unchecked"},
		"an escaped name":       {`{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"type":"string"}}}`, `"x"`, "yes"},
		"an unknown keyword":    {`{"not":{}}`, `1`, "unchecked"},
		"no schema":             {`7`, `1`, "unchecked"},
		"a bound that is none":  {`{"minimum":"1"}`, `1`, "unchecked"},
	} {
		err := conforms(c.text, []byte(c.schema))
		got := "yes"
		if errors.Is(err, errUnchecked) {
			got = "unchecked"
		} else if err != nil {
			got = "no"
		}
		if got != c.want {
			t.Errorf("%s: %s (%v), want %s", name, got, err, c.want)
		}
	}
}

func FuzzConforms(f *testing.F) {
	f.Add(`{"a":[1]}`, []byte(`{"type":"object","properties":{"a":{"items":{"$ref":"#/$defs/x"}}},"$defs":{"x":{"anyOf":[{"maximum":1},{"$ref":"#"}]}}}`))
	f.Add(`"a"`, []byte(`{"enum":["a"],"minLength":1,"required":[1],"allOf":[true]}`))
	f.Fuzz(func(t *testing.T, text string, schema []byte) {
		if err := conforms(text, schema); err == nil && (!json.Valid([]byte(text)) || !json.Valid(schema)) {
			t.Fatalf("%q conforms to %q", text, schema)
		}
	})
}
