package grammar

import "fmt"

// Demand is what a completion has to be: one of the forms that are set.
type Demand struct {
	// Text is any text, with at most Calls calls of Tools behind it. It stands alone. Such a completion may be cut where
	// its room ends: a text that is made to end there would look as if it were whole.
	Text bool
	// Object is a JSON object, of any kind.
	Object bool
	// Schema is a JSON schema: the form is a value that it describes.
	Schema []byte
	// Calls, if it is not 0, is one to Calls calls of Tools, of which there is one at least.
	Calls int
	Tools []Tool
}

// Tool is a function that a completion may call.
type Tool struct {
	Name string
	// Parameters is the JSON schema of its arguments; empty means that there are none.
	Parameters []byte
	// Strict wants the schema to be enforced. Otherwise arguments are any JSON object where it cannot be.
	Strict bool
}

// MaxTools bounds the tools of a demand.
const MaxTools = 128

// Compile makes a grammar of a demand. It fails with an *UnsupportedError if a schema asks for more than a grammar can
// enforce, and with ErrSchema if one is no schema.
func Compile(d Demand) (*Grammar, error) {
	if d.Calls > 0 && len(d.Tools) == 0 {
		return nil, &UnsupportedError{Why: "there are no tools to call"}
	}
	if len(d.Tools) > MaxTools {
		return nil, &UnsupportedError{Why: fmt.Sprintf("there are %d tools, at most %d", len(d.Tools), MaxTools)}
	}
	p := newProgram()
	call := func() { p.call("call", func() { p.toolCall(d.Tools) }) }
	var ways []func()
	if d.Object {
		ways = append(ways, p.object)
	}
	if len(d.Schema) > 0 {
		ways = append(ways, func() { p.schema("answer", d.Schema) })
	}
	switch {
	case d.Text:
		p.cut = true
		p.prose()
		p.upTo(d.Calls, call)
		return p.finish()
	case d.Calls > 0:
		ways = append(ways, func() {
			call()
			p.upTo(d.Calls-1, call)
		})
	}
	if len(ways) == 0 {
		return nil, &UnsupportedError{Why: "no form is asked for"}
	}
	p.choice(ways...)
	return p.finish()
}

// toolCall takes a call of one of some tools.
func (p *program) toolCall(tools []Tool) {
	p.emit(opMark, markCall)
	var ways []func()
	for i, t := range tools {
		ways = append(ways, func() {
			p.text(t.Name)
			p.emit(opMark, markArgs)
			p.arguments(fmt.Sprint(i), t)
		})
	}
	p.choice(ways...)
}

// arguments takes a tool's. The name is that of its schema among those of the program.
func (p *program) arguments(name string, t Tool) {
	if len(t.Parameters) == 0 {
		p.text("{}")
		return
	}
	if !t.Strict {
		alone := newProgram()
		alone.schema(name, t.Parameters)
		if _, err := alone.finish(); err != nil {
			p.object()
			return
		}
	}
	p.schema(name, t.Parameters)
}
