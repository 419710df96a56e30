package telemetry

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// The spans of Agent Lightning that carry rewards, and how the operation that does is named.
const (
	annotationSpan  = "agentlightning.annotation"
	operationSpan   = "agentlightning.operation"
	rewardOperation = "agentlightning.reward"
)

// evaluationEvent is the event by which OpenTelemetry's conventions report a judgement.
const evaluationEvent = "gen_ai.evaluation.result"

// kinds is how dialects say what a span stands for: an attribute, and its values, in lower case.
var kinds = []struct {
	attribute string
	values    map[string]Kind
}{
	{"openinference.span.kind", map[string]Kind{"llm": KindCall, "tool": KindTool, "agent": KindAgent, "evaluator": KindReward}},
	{"agentops.span.kind", map[string]Kind{"llm": KindCall, "tool": KindTool, "agent": KindAgent}},
	{"traceloop.span.kind", map[string]Kind{"tool": KindTool, "agent": KindAgent}},
	{"gen_ai.operation.name", map[string]Kind{
		"chat": KindCall, "text_completion": KindCall, "generate_content": KindCall,
		"execute_tool": KindTool, "invoke_agent": KindAgent, "create_agent": KindAgent,
	}},
	{"llm.request.type", map[string]Kind{"chat": KindCall, "completion": KindCall}},
}

// anyAgent are the attributes that name a span's agent whatever its kind: OpenTelemetry's; OpenInference's and AgentOps';
// and those of frameworks, AutoGen, Agent Framework, LangGraph.
var anyAgent = []string{
	"gen_ai.agent.name", "agent.name", "recipient_agent_type", "executor.id", "graph.node.id",
	"traceloop.association.properties.langgraph_node", "langchain.chain.type",
}

// ownName are the attributes that name what an agent's or a tool's span is of.
var ownName = []string{"agentops.entity.name", "traceloop.entity.name", "operation.name"}

// interpret fills in what a span's name, status, attributes and events say.
func interpret(out *Span, s *tracepb.Span, form Form) {
	a := newAttributes(s.GetAttributes())
	out.Kind = kindOf(s.GetName(), a)
	out.Failed = s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR || a.has("error.type") ||
		slices.Contains([]string{"error", "failed", "failure"}, strings.ToLower(a.raw("tool.status")))
	for _, name := range anyAgent {
		out.addAgent(a.text(name))
	}
	switch out.Kind {
	case KindAgent:
		for _, name := range ownName {
			out.addAgent(a.text(name))
		}
		out.addAgent(clip(s.GetName()))
	case KindTool:
		names := append([]string{"gen_ai.tool.name", "tool.name"}, ownName...)
		if out.Tool = a.text(names...); out.Tool == "" {
			out.Tool = clip(strings.TrimPrefix(s.GetName(), "execute_tool "))
		}
		out.ToolCall = a.text("gen_ai.tool.call.id", "tool_call.id", "tool.id")
	}
	if out.Kind == KindOther && a.has("gen_ai.response.id") {
		out.Kind = KindCall
	}
	if out.Kind == KindCall {
		if out.Response = a.text("gen_ai.response.id"); out.Response == "" {
			out.Response = answerID(a.raw("output.value"))
		}
	}
	out.judge(s, a, form)
}

// kindOf is what a span stands for.
func kindOf(name string, a attributes) Kind {
	if name == annotationSpan || name == operationSpan && a.raw("agentlightning.operation.name") == rewardOperation {
		return KindReward
	}
	for _, k := range kinds {
		if kind, ok := k.values[strings.ToLower(a.raw(k.attribute))]; ok {
			return kind
		}
	}
	return KindOther
}

// addAgent adds a name, if it is one and is not there.
func (s *Span) addAgent(name string) {
	if name != "" && len(s.Agents) < maxAgents && !slices.Contains(s.Agents, name) {
		s.Agents = append(s.Agents, name)
	}
}

// answerID is the id of an answer that an instrumentation keeps as a whole, as OpenInference's do: that of the server's
// JSON, or of what LangChain makes of it.
func answerID(body string) string {
	if !strings.HasPrefix(strings.TrimSpace(body), "{") {
		return ""
	}
	var answer struct {
		ID  string `json:"id"`
		LLM struct {
			ID string `json:"id"`
		} `json:"llm_output"`
	}
	if json.Unmarshal([]byte(body), &answer) != nil {
		return ""
	}
	if answer.ID == "" {
		answer.ID = answer.LLM.ID
	}
	return clip(answer.ID)
}

// judge reads the rewards of all dialects.
func (s *Span) judge(span *tracepb.Span, a attributes, form Form) {
	if s.Kind == KindReward {
		to := s.link(a)
		for _, l := range span.GetLinks() {
			var id ID
			if to == (Reward{}) && setID(id.Trace[:], l.GetTraceId(), form) && setID(id.Span[:], l.GetSpanId(), form) {
				to.Linked = id
			}
		}
		s.addRewards(a, to, "agentlightning.reward.%d.name", "agentlightning.reward.%d.value")
	}
	for _, prefix := range []string{"", "trace.", "session."} {
		evaluation := prefix + "evaluations.%d.evaluation."
		s.addRewards(a, Reward{Whole: prefix != ""}, evaluation+"name", evaluation+"score")
	}
	for _, event := range span.GetEvents() {
		if event.GetName() != evaluationEvent {
			continue
		}
		e := newAttributes(event.GetAttributes())
		if v, ok := e.number("gen_ai.evaluation.score.value"); ok {
			s.addReward(Reward{Name: e.text("gen_ai.evaluation.name"), Value: v, Response: e.text("gen_ai.response.id")})
		}
	}
}

// addRewards adds a numbered list of rewards, all for the same as to.
func (s *Span) addRewards(a attributes, to Reward, name, value string) {
	for i := range maxRewards {
		v, ok := a.number(fmt.Sprintf(value, i))
		if !ok {
			if !a.has(fmt.Sprintf(value, i)) && !a.has(fmt.Sprintf(name, i)) {
				return
			}
			continue
		}
		r := to
		r.Name, r.Value = a.text(fmt.Sprintf(name, i)), v
		s.addReward(r)
	}
}

func (s *Span) addReward(r Reward) {
	if len(s.Rewards) < maxRewards {
		s.Rewards = append(s.Rewards, r)
	}
}

// link is what an Agent Lightning span links to. Its links are attributes, and their values, of the span that is meant. Of
// one by which no span is found here, Response is a text that is no answer's id, so that the reward goes to nobody.
func (s *Span) link(a attributes) (to Reward) {
	for i := range maxRewards {
		key := a.raw(fmt.Sprintf("agentlightning.link.%d.key_match", i))
		value := a.text(fmt.Sprintf("agentlightning.link.%d.value_match", i))
		id, err := hex.DecodeString(value)
		switch {
		case key == "":
			return to
		case key == "gen_ai.response.id" && value != "":
			return Reward{Response: value}
		case key == "trace_id" && err == nil && len(id) == len(to.Linked.Trace):
			to.Linked.Trace = [16]byte(id)
		case key == "span_id" && err == nil && len(id) == len(to.Linked.Span):
			to.Linked.Span = [8]byte(id)
			if to.Linked.Trace == [16]byte{} {
				to.Linked.Trace = s.ID.Trace
			}
		default:
			to.Response = clip("link:" + key)
		}
	}
	return to
}
