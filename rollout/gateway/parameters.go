package gateway

import (
	"bytes"
	"encoding/json"
)

// parameters is what a policy reads of a tool's JSON schema. Frameworks that make a schema of a function put a title on
// everything, or a description that is a parameter's name again, or say which draft of JSON Schema it is of; that says
// nothing, costs a small policy's context and makes the same tool look different in each framework, so it is left out. The
// rest stays, in its order.
func parameters(schema json.RawMessage) string {
	if isNull(schema) {
		return ""
	}
	return string(plainSchema(schema, "", maxSchemaLevels))
}

// maxSchemaLevels bounds how deeply what says nothing is looked for, because each level is read anew.
const maxSchemaLevels = 16

// plainSchema is a schema without what says nothing, down to some levels of schemas. name is that of the property that
// it is of, or empty.
func plainSchema(schema json.RawMessage, name string, levels int) json.RawMessage {
	if levels == 0 {
		return schema
	}
	return eachMember(schema, func(key string, value json.RawMessage) json.RawMessage {
		var text string
		switch key {
		case "title", "$schema":
			if json.Unmarshal(value, &text) == nil {
				return nil
			}
		case "description":
			if name != "" && json.Unmarshal(value, &text) == nil && text == name {
				return nil
			}
		case "properties", "$defs":
			return eachMember(value, func(property string, schema json.RawMessage) json.RawMessage {
				return plainSchema(schema, property, levels-1)
			})
		case "items":
			return plainSchema(value, "", levels-1)
		}
		return value
	})
}

// eachMember is an object with each member's value replaced, or left out where the replacement is nil. What is no object,
// or what nothing is left out of, comes back as it is.
func eachMember(object json.RawMessage, replace func(key string, value json.RawMessage) json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(object))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return object
	}
	out, changed := []byte{'{'}, false
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return object
		}
		key, _ := token.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return object
		}
		replaced := replace(key, value)
		changed = changed || !bytes.Equal(replaced, value)
		if replaced == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		name, err := json.Marshal(key)
		if err != nil {
			return object
		}
		out = append(append(append(out, name...), ':'), replaced...)
	}
	if !changed {
		return object
	}
	return append(out, '}')
}
