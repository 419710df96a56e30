package grammar

import (
	"fmt"
	"strconv"
)

// maxSpan is how many integers between a minimum and a maximum are written out, and maxCount the largest number of items or
// characters that a schema may ask for.
const (
	maxSpan  = 1 << 10
	maxCount = 1 << 10
)

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
