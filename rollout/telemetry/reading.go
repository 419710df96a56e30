package telemetry

// Calls says which recorded call an id stands for. Both functions are required; a call has a number from 0 on.
type Calls struct {
	// Response takes the id of an answer, ToolCall that of a tool call in one.
	Response, ToolCall func(id string) (call int, ok bool)
}

// Reading is what spans say of a rollout.
type Reading struct {
	// Agents are the roles that calls were made in, for those of which the spans tell.
	Agents map[int]string
	// Tools are the executions of tools, in the order in which they began.
	Tools []ToolOutcome
	// Rewards are what calls were given, added up.
	Rewards map[int]float64
	// Final is what the rollout as a whole was judged to be worth, last; nil if it was not.
	Final *Final
	// Lost counts rewards and executions of tools that belong to no recorded call.
	Lost int
}

// ToolOutcome is one execution of a tool.
type ToolOutcome struct {
	// Call is the call that called the tool.
	Call   int
	Tool   string
	Failed bool
}

// Final is a judgement of a rollout.
type Final struct {
	Value float64
	// Components explain the value, by name.
	Components map[string]float64
}

// Read says what the spans mean. Roles are the agents that the environment knows.
func (t *Trace) Read(calls Calls, roles []string) Reading {
	r := reader{
		trace: t, all: t.sorted(), called: map[*Span]int{},
		out: Reading{Agents: map[int]string{}, Rewards: map[int]float64{}},
	}
	known := map[string]bool{}
	for _, role := range roles {
		known[role] = true
	}
	r.findCalls(calls, known)
	r.findTools(calls)
	r.findRewards(calls)
	return r.out
}

// reader is one run of Read.
type reader struct {
	trace *Trace
	all   []*Span
	// answers are the spans of recorded calls, in the order of all: the first of each call.
	answers []answer
	// called is the call that made each span: its own for a model's call, the one that called it for a tool.
	called map[*Span]int
	out    Reading
}

// answer is a span of a recorded call.
type answer struct {
	span  *Span
	call  int
	above []*Span
}

// findCalls finds the spans of recorded calls, and their agents.
func (r *reader) findCalls(calls Calls, known map[string]bool) {
	seen := map[int]bool{}
	for _, s := range r.all {
		if s.Kind != KindCall || s.Response == "" {
			continue
		}
		call, ok := calls.Response(s.Response)
		if !ok {
			continue
		}
		r.called[s] = call
		above := r.trace.above(s)
		if !seen[call] {
			seen[call] = true
			r.answers = append(r.answers, answer{s, call, above})
		}
		if r.out.Agents[call] == "" {
			if name := nearest(above, known); name != "" {
				r.out.Agents[call] = name
			}
		}
	}
}

// nearest is the first name, going up, that is known.
func nearest(path []*Span, known map[string]bool) string {
	for _, s := range path {
		for _, name := range s.Agents {
			if known[name] {
				return name
			}
		}
	}
	return ""
}

// findTools finds the executions of tools, each once: several instrumentations may tell of one.
func (r *reader) findTools(calls Calls) {
	seen := map[string]bool{}
	for _, s := range r.all {
		if s.Kind != KindTool {
			continue
		}
		above := r.trace.above(s)
		call, named := calls.ToolCall(s.ToolCall)
		again := named && seen[s.ToolCall] || !named && inside(above)
		if named {
			seen[s.ToolCall] = true
		} else if call, named = r.lastNear(s, above); !named {
			r.out.Lost++
			continue
		}
		r.called[s] = call
		if !again {
			r.out.Tools = append(r.out.Tools, ToolOutcome{call, s.Tool, s.Failed})
		}
	}
}

// inside says that the tool's span is below another of the same tool.
func inside(path []*Span) bool {
	for _, s := range path[1:] {
		if s.Kind == KindTool && s.Tool == path[0].Tool {
			return true
		}
	}
	return false
}

// lastNear is the call that called a tool whose span does not say so: the last that had ended, of those that share the
// most of the tree with it.
func (r *reader) lastNear(s *Span, above []*Span) (call int, ok bool) {
	height := map[*Span]int{}
	for i, up := range above {
		height[up] = i
	}
	var best answer
	near := maxHeight + 1 // how far above the tool what it shares with the best begins
	for _, a := range r.answers {
		if a.span.End > s.Start {
			continue
		}
		at := maxHeight // nothing is shared
		for _, up := range a.above {
			if h, shared := height[up]; shared {
				at = h
				break
			}
		}
		if at < near || at == near && a.span.End >= best.span.End {
			best, near = a, at
		}
	}
	return best.call, near <= maxHeight
}
