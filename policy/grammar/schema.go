package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxSchema bounds a JSON schema, in bytes, and maxParts its parts, references followed.
const (
	maxSchema = 64 << 10
	maxParts  = 1 << 12
	// maxSpan is how many integers between a minimum and a maximum are written out, and maxCount the largest number of
	// items or characters that a schema may ask for.
	maxSpan  = 1 << 10
	maxCount = 1 << 10
)

// ErrSchema says that a text is no JSON schema.
var ErrSchema = errors.New("bad JSON schema")

// UnsupportedError says that a schema asks for something that a grammar cannot hold, or is too large for one.
type UnsupportedError struct {
	// Keyword is the keyword of the schema, empty if it is none alone, and Path where it stands.
	Keyword, Path string
	// Why says more; it may be empty.
	Why string
}

func (e *UnsupportedError) Error() string {
	text := "the schema cannot be enforced"
	if e.Path != "" {
		text += " at " + e.Path
	}
	if e.Keyword != "" {
		text += fmt.Sprintf(": %q is not supported", clip(e.Keyword))
	}
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// Keywords that assert nothing, and those that are enforced.
var (
	annotations = []string{
		"$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "format",
		"deprecated", "readOnly", "writeOnly",
	}
	assertions = []string{
		"$ref", "anyOf", "allOf", "type", "enum", "const", "properties", "required", "additionalProperties", "items",
		"minItems", "maxItems", "minLength", "maxLength", "pattern", "minimum", "maximum",
	}
)

// compiler writes a schema into a program.
type compiler struct {
	*program
	root any
	name string // of the schema among those of the program
	left int    // parts
}

// schema takes the values of a JSON schema, whose name no other of the program has.
func (p *program) schema(name string, schema []byte) {
	c := &compiler{program: p, name: name, left: maxParts}
	if len(schema) > maxSchema {
		c.unsupported("", "", "it has %d bytes, at most %d", len(schema), maxSchema)
		return
	}
	var err error
	if c.root, err = decode(schema); err != nil {
		c.wrong("$", err.Error())
		return
	}
	c.part(c.root, "$")
}

func (c *compiler) unsupported(keyword, path, why string, arguments ...any) {
	if c.err == nil {
		c.err = &UnsupportedError{keyword, path, fmt.Sprintf(why, arguments...)}
	}
}

func (c *compiler) wrong(path, why string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w at %s: %s", ErrSchema, path, why)
	}
}

// part takes the values of a schema that stands at a path.
func (c *compiler) part(v any, path string) {
	if c.err != nil {
		return
	}
	if c.left--; c.left < 0 || c.full() {
		c.unsupported("", path, "it is too large")
		return
	}
	if all, ok := v.(bool); ok {
		if !all {
			c.unsupported("", path, "nothing is allowed here")
		}
		c.value()
		return
	}
	s, ok := v.(members)
	if !ok {
		c.wrong(path, "it is neither an object nor a boolean")
		return
	}
	var asserted []string
	for _, m := range s {
		switch {
		case slices.Contains(annotations, m.name):
		case slices.Contains(assertions, m.name):
			asserted = append(asserted, m.name)
		default:
			c.unsupported(m.name, path, "")
		}
	}
	alone := func(keyword string, but ...string) {
		for _, name := range asserted {
			if name != keyword && !slices.Contains(but, name) {
				c.unsupported(name, path, "it stands beside %s", keyword)
			}
		}
	}
	switch {
	case slices.Contains(asserted, "$ref"):
		alone("$ref")
		c.reference(s, path)
	case slices.Contains(asserted, "anyOf"):
		alone("anyOf")
		c.anyOf(s, path)
	case slices.Contains(asserted, "allOf"):
		alone("allOf")
		list, _ := mustGet(s, "allOf").([]any)
		if len(list) != 1 {
			c.unsupported("allOf", path, "it has %d parts", len(list))
			return
		}
		c.part(list[0], path+".allOf[0]")
	case slices.Contains(asserted, "const"):
		alone("const", "type")
		c.literals([]any{mustGet(s, "const")}, s, path)
	case slices.Contains(asserted, "enum"):
		alone("enum", "type")
		list, ok := mustGet(s, "enum").([]any)
		if !ok || len(list) == 0 {
			c.wrong(path, "enum is no list of values")
			return
		}
		c.literals(list, s, path)
	default:
		c.types(s, path)
	}
}

func mustGet(s members, name string) any {
	v, _ := s.get(name)
	return v
}

// reference takes what a JSON pointer into the schema names.
func (c *compiler) reference(s members, path string) {
	pointer, _ := mustGet(s, "$ref").(string)
	if plain, err := url.PathUnescape(pointer); err == nil { // it is a part of a URI
		pointer = plain
	}
	parts := strings.Split(pointer, "/")
	if parts[0] != "#" {
		c.unsupported("$ref", path, "%q is no place in the schema", clip(pointer))
		return
	}
	target := c.root
	for _, part := range parts[1:] {
		var ok bool
		switch parent := target.(type) {
		case members:
			target, ok = parent.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
		case []any:
			i, err := strconv.Atoi(part)
			if ok = err == nil && i >= 0 && i < len(parent); ok {
				target = parent[i]
			}
		default:
			ok = false
		}
		if !ok {
			c.wrong(path, fmt.Sprintf("there is no %q in it", clip(pointer)))
			return
		}
	}
	c.call(c.name+" "+pointer, func() { c.part(target, pointer) })
}

func (c *compiler) anyOf(s members, path string) {
	list, _ := mustGet(s, "anyOf").([]any)
	if len(list) == 0 {
		c.wrong(path, "anyOf is no list of schemas")
		return
	}
	var ways []func()
	for i, v := range list {
		ways = append(ways, func() { c.part(v, fmt.Sprintf("%s.anyOf[%d]", path, i)) })
	}
	c.choice(ways...)
}

// literals takes one of some values, as far as they are of the schema's type.
func (c *compiler) literals(values []any, s members, path string) {
	types := c.typeNames(s, path)
	var texts []string
	for _, v := range values {
		is := typeOf(v)
		if len(types) == 0 || slices.Contains(types, is) || is == "integer" && slices.Contains(types, "number") {
			texts = append(texts, compact(v))
		}
	}
	if len(texts) == 0 {
		c.unsupported("", path, "no value is of the type")
		return
	}
	c.oneOf(texts)
}

// typeOf is a value's type in JSON schema's words.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// typeNames are the types that a schema allows, nil for all.
func (c *compiler) typeNames(s members, path string) (names []string) {
	v, ok := s.get("type")
	if !ok {
		return nil
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, v := range list {
		name, _ := v.(string)
		if !slices.Contains([]string{"null", "boolean", "string", "integer", "number", "array", "object"}, name) {
			c.wrong(path, "type is none of JSON's")
			return nil
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		c.wrong(path, "type is an empty list")
	}
	return names
}

// types takes a value of one of the schema's types. If it names none, what else it says decides.
func (c *compiler) types(s members, path string) {
	names := c.typeNames(s, path)
	for _, hint := range [...]struct{ keyword, name string }{
		{"properties", "object"}, {"required", "object"}, {"additionalProperties", "object"},
		{"items", "array"}, {"minItems", "array"}, {"maxItems", "array"},
		{"minLength", "string"}, {"maxLength", "string"}, {"pattern", "string"},
		{"minimum", "integer"}, {"maximum", "integer"},
	} {
		if _, said := s.get(hint.keyword); said && len(names) == 0 {
			names = []string{hint.name}
		}
	}
	if len(names) == 0 {
		c.value()
		return
	}
	var ways []func()
	for _, name := range names {
		ways = append(ways, func() { c.typed(name, s, path) })
	}
	c.choice(ways...)
}

func (c *compiler) typed(name string, s members, path string) {
	if c.err != nil {
		return
	}
	switch name {
	case "null":
		c.text("null")
	case "boolean":
		c.oneOf([]string{"true", "false"})
	case "string":
		c.stringOf(s, path)
	case "integer":
		c.integerOf(s, path)
	case "number":
		for _, keyword := range []string{"minimum", "maximum"} {
			if _, said := s.get(keyword); said {
				c.unsupported(keyword, path, "only integers have bounds")
			}
		}
		c.number()
	case "array":
		c.arrayOf(s, path)
	case "object":
		c.objectOf(s, path)
	}
}

// count is the value of a keyword that counts, or otherwise if it is not there.
func (c *compiler) count(s members, keyword string, otherwise int, path string) int {
	v, ok := s.get(keyword)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(fmt.Sprint(v))
	switch {
	case err != nil || n < 0:
		c.wrong(path, keyword+" is no count")
	case n > maxCount:
		c.unsupported(keyword, path, "%d is above %d", n, maxCount)
		return otherwise
	}
	return n
}

func (c *compiler) stringOf(s members, path string) {
	low, high := c.count(s, "minLength", 0, path), c.count(s, "maxLength", -1, path)
	expression, found := s.get("pattern")
	text, isText := expression.(string)
	switch {
	case found && !isText:
		c.wrong(path, "pattern is no text")
	case found && (low > 0 || high >= 0):
		c.unsupported("pattern", path, "it stands beside a length")
	case found:
		c.pattern(text, path)
	case high >= 0 && high < low:
		c.unsupported("maxLength", path, "it is below minLength")
	case low == 0 && high < 0:
		c.string()
	default:
		c.boundedString(low, high)
	}
}

func (c *compiler) integerOf(s members, path string) {
	bound := func(keyword string) *int {
		v, ok := s.get(keyword)
		if !ok {
			return nil
		}
		n, err := strconv.Atoi(fmt.Sprint(v))
		if err != nil {
			c.unsupported(keyword, path, "it is no integer")
			return nil
		}
		return &n
	}
	low, high := bound("minimum"), bound("maximum")
	switch {
	case high == nil && (low == nil || *low == 0 || *low == 1):
		c.integer(low)
	case high == nil:
		c.unsupported("minimum", path, "without maximum only 0 and 1 are supported")
	case low == nil || *high < *low || *high-*low > maxSpan || *low < -1<<40 || *high > 1<<40:
		c.unsupported("maximum", path, "it needs a minimum at most %d below", maxSpan)
	default:
		var texts []string
		for n := *low; n <= *high; n++ {
			texts = append(texts, strconv.Itoa(n))
		}
		c.oneOf(texts)
	}
}

func (c *compiler) arrayOf(s members, path string) {
	low, high := c.count(s, "minItems", 0, path), c.count(s, "maxItems", -1, path)
	items, said := s.get("items")
	if !said {
		items = true
	}
	if _, isList := items.([]any); isList {
		c.unsupported("items", path, "it is a list")
	}
	switch {
	case high >= 0 && high < low:
		c.unsupported("maxItems", path, "it is below minItems")
		return
	case high == 0:
		c.text("[]")
		return
	}
	name := c.fresh()
	item := func() { c.call(name, func() { c.part(items, path+".items") }) }
	next := func() {
		c.text(",")
		item()
	}
	some := func() {
		item()
		for range low - 1 {
			if c.full() {
				return
			}
			next()
		}
		if high < 0 {
			c.many(next)
		} else {
			c.upTo(high-max(low, 1), next)
		}
	}
	c.text("[")
	if low == 0 {
		c.optional(some)
	} else {
		some()
	}
	c.text("]")
}

// objectOf takes an object with the members that the schema names, in its order. Of a schema that names none, and does
// not refuse others, it takes any members.
func (c *compiler) objectOf(s members, path string) {
	properties, _ := mustGet(s, "properties").(members)
	names, _ := mustGet(s, "required").([]any)
	other, said := s.get("additionalProperties")
	if !said {
		other = true
	}
	required := make(map[string]bool)
	for _, v := range names {
		name, ok := v.(string)
		if !ok {
			c.wrong(path, "required is no list of names")
			return
		}
		required[name] = true
		if _, known := properties.get(name); !known {
			if other == false {
				c.unsupported("required", path, "%q is not allowed", clip(name))
				return
			}
			properties = append(properties[:len(properties):len(properties)], member{name, other})
		}
	}
	if _, named := s.get("properties"); !named && len(properties) == 0 && other != false {
		name := c.fresh()
		c.mapOf(func() { c.call(name, func() { c.part(other, path+".additionalProperties") }) })
		return
	}
	c.text("{")
	c.members(properties, required, path)
	c.text("}")
}

// members takes the members of an object, in order. There are two ways through them: one on which nothing was written
// yet, and one on which a comma comes before the next; each member's own text stands on both.
func (c *compiler) members(properties members, required map[string]bool, path string) {
	texts, ends := make([]int32, len(properties)), make([]int32, len(properties))
	first := true // the first way comes by here
	for i, m := range properties {
		var skip int32
		if first && !required[m.name] {
			skip = c.emit(opSplit, 0)
		}
		texts[i] = c.here()
		c.text(quote(m.name) + ":")
		c.part(m.value, path+"."+clip(m.name))
		ends[i] = c.emit(opJump, 0)
		switch {
		case required[m.name]:
			first = false
		case first:
			c.code[skip].arg = c.here()
		}
	}
	var done []int32 // what goes to the end
	if first && len(properties) > 0 {
		done = append(done, c.emit(opJump, 0))
	}
	skip := int32(-1)
	for i, m := range properties {
		if i > 0 {
			if skip >= 0 {
				c.code[skip].arg = c.here()
				skip = -1
			}
			c.code[ends[i-1]].arg = c.here()
			if !required[m.name] {
				skip = c.emit(opSplit, 0)
			}
			c.text(",")
			c.emit(opJump, texts[i])
		}
	}
	if skip >= 0 {
		done = append(done, skip)
	}
	if n := len(ends); n > 0 {
		done = append(done, ends[n-1])
	}
	for _, at := range done {
		c.code[at].arg = c.here()
	}
}
