package telemetry

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"pgregory.net/rapid"
)

var dialectNames = []string{"opentelemetry", "openinference", "openllmetry", "agentops", "agentlightning"}

// recorded are the calls of a session named S: its answers' ids end in S-NUMBER, its tool calls are call_NUMBER_INDEX.
var recorded = Calls{
	Response: func(id string) (int, bool) {
		_, number, ok := strings.Cut(id, "S-")
		n, err := strconv.Atoi(number)
		return n, ok && err == nil
	},
	ToolCall: func(id string) (int, bool) {
		number, _, _ := strings.Cut(strings.TrimPrefix(id, "call_"), "_")
		n, err := strconv.Atoi(number)
		return n, err == nil
	},
}

var roles = []string{"solver", "critic"}

// What every dialect says.
func TestDialects(t *testing.T) {
	for name, want := range map[string]Reading{
		"opentelemetry": {
			Agents:  map[int]string{0: "solver", 1: "solver", 2: "critic"},
			Tools:   []ToolOutcome{{0, "calculator", true}, {1, "calculator", false}},
			Rewards: map[int]float64{0: 0.25, 2: -0.5},
			Final:   &Final{Value: 1},
		},
		"openinference": {
			Agents:  map[int]string{0: "solver", 2: "critic"},
			Tools:   []ToolOutcome{{0, "calculator", false}, {0, "lookup", true}},
			Rewards: map[int]float64{0: 1},
			Final:   &Final{Value: 0.75},
		},
		"openllmetry": {
			Agents: map[int]string{0: "solver", 1: "critic"},
			Tools:  []ToolOutcome{{0, "calculator", false}},
		},
		"agentops": {
			Agents: map[int]string{0: "solver", 1: "solver"},
			Tools:  []ToolOutcome{{0, "calculator", true}, {1, "calculator", false}},
		},
		"agentlightning": {
			Agents:  map[int]string{0: "solver", 1: "solver"},
			Rewards: map[int]float64{0: 0.4},
			Final:   &Final{Value: 0.8, Components: map[string]float64{"task": 0.8, "speed": 0.4}},
			Lost:    1,
		},
	} {
		var trace Trace
		spans, _, err := Decode(jsonType, "", payload(t, name))
		if err != nil {
			t.Fatal(err)
		}
		rejected := trace.Add(spans)
		got := trace.Read(recorded, roles)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1e-12)); diff != "" || rejected > 0 {
			t.Errorf("%s: %d rejected, (-want +got):\n%s", name, rejected, diff)
		}
	}
}

// at is a span of the test's trace.
func at(id, parent byte, kind Kind, start, end uint64) Span {
	return Span{ID: ID{[16]byte{1}, [8]byte{id}}, Parent: [8]byte{parent}, Kind: kind, Start: start, End: end}
}

// with is a span with more to it.
func with(s Span, change func(s *Span)) Span {
	change(&s)
	return s
}

func answered(s Span, response string) Span {
	return with(s, func(s *Span) { s.Response = response })
}

func tool(s Span, name, call string) Span {
	return with(s, func(s *Span) { s.Tool, s.ToolCall = name, call })
}

func rewarded(s Span, rewards ...Reward) Span {
	return with(s, func(s *Span) { s.Rewards = rewards })
}

func TestReading(t *testing.T) {
	for name, c := range map[string]struct {
		spans []Span
		want  Reading
	}{
		"nothing": {},
		"a tool belongs to the branch that it is in": {
			spans: []Span{
				at(1, 0, KindAgent, 0, 100),
				at(2, 1, KindAgent, 0, 50), answered(at(3, 2, KindCall, 1, 5), "S-0"), tool(at(4, 2, KindTool, 30, 31), "a", ""),
				at(5, 1, KindAgent, 0, 50), answered(at(6, 5, KindCall, 2, 20), "S-1"), tool(at(7, 5, KindTool, 32, 33), "b", ""),
				tool(at(8, 1, KindTool, 60, 61), "c", ""),
			},
			want: Reading{Tools: []ToolOutcome{{0, "a", false}, {1, "b", false}, {1, "c", false}}},
		},
		"a tool before every call is nobody's": {
			spans: []Span{tool(at(1, 0, KindTool, 0, 1), "a", ""), answered(at(2, 0, KindCall, 2, 3), "S-0")},
			want:  Reading{Lost: 1},
		},
		"another trace is better than none": {
			spans: []Span{
				answered(with(at(1, 0, KindCall, 0, 1), func(s *Span) { s.ID.Trace[0] = 9 }), "S-3"), tool(at(2, 0, KindTool, 2, 3), "a", ""),
			},
			want: Reading{Tools: []ToolOutcome{{3, "a", false}}},
		},
		"an execution counts once": {
			spans: []Span{
				answered(at(1, 0, KindCall, 0, 1), "S-0"),
				tool(at(2, 0, KindTool, 2, 9), "a", "call_0_0"), tool(at(3, 2, KindTool, 3, 8), "a", "call_0_0"),
				tool(at(4, 0, KindTool, 12, 19), "b", ""), tool(at(5, 4, KindTool, 13, 18), "b", "unknown"),
				tool(at(6, 0, KindTool, 22, 23), "b", ""),
			},
			want: Reading{Tools: []ToolOutcome{{0, "a", false}, {0, "b", false}, {0, "b", false}}},
		},
		"rewards of tools and agents are their calls'": {
			spans: []Span{
				at(9, 0, KindOther, 0, 100),
				at(1, 9, KindAgent, 0, 50), answered(at(2, 1, KindCall, 1, 2), "S-0"), answered(at(3, 1, KindCall, 3, 4), "S-1"),
				rewarded(tool(at(4, 1, KindTool, 5, 6), "a", "call_0_0"), Reward{Value: 1}),
				rewarded(at(5, 9, KindOther, 60, 61), Reward{Value: 8}),
				with(rewarded(at(1, 9, KindAgent, 0, 50), Reward{Value: 2}), func(s *Span) { s.ID.Span[0] = 6 }),
				rewarded(at(7, 9, KindAgent, 70, 80), Reward{Value: 4}), answered(at(8, 7, KindCall, 71, 72), "S-2"),
			},
			want: Reading{Tools: []ToolOutcome{{0, "a", false}}, Rewards: map[int]float64{0: 1, 2: 4}, Lost: 2},
		},
		"one span judges several answers": {
			spans: []Span{
				answered(at(1, 0, KindCall, 0, 1), "S-0"), answered(at(2, 0, KindCall, 2, 3), "S-1"),
				rewarded(at(3, 0, KindReward, 4, 5),
					Reward{Value: 1, Response: "S-0"}, Reward{Value: 9, Response: "S-0"}, Reward{Value: 2, Response: "S-1"},
					Reward{Value: 3, Linked: ID{[16]byte{1}, [8]byte{2}}}, Reward{Value: 4, Response: "elsewhere"},
					Reward{Value: 5, Linked: ID{[16]byte{1}, [8]byte{77}}}, Reward{Value: 6}),
			},
			want: Reading{Rewards: map[int]float64{0: 1, 1: 5}, Final: &Final{Value: 6}, Lost: 2},
		},
		"the last judgement of all counts": {
			spans: []Span{
				answered(at(1, 0, KindCall, 0, 1), "S-0"),
				rewarded(at(2, 0, KindReward, 2, 2), Reward{Value: 1}), rewarded(at(3, 0, KindReward, 9, 9), Reward{Value: 2}),
				rewarded(at(4, 0, KindOther, 0, 20), Reward{Value: 3, Whole: true}),
			},
			want: Reading{Rewards: map[int]float64{0: 1}, Final: &Final{Value: 2}},
		},
		"circles end": {
			spans: []Span{
				with(at(1, 2, KindAgent, 0, 9), func(s *Span) { s.Agents = []string{"stranger"} }), at(2, 1, KindAgent, 0, 9),
				answered(at(3, 2, KindCall, 1, 2), "S-0"), rewarded(at(4, 4, KindOther, 0, 9), Reward{Value: 1}),
			},
			want: Reading{Lost: 1},
		},
		"the nearest role": {
			spans: []Span{
				with(at(1, 0, KindAgent, 0, 9), func(s *Span) { s.Agents = []string{"critic"} }),
				with(at(2, 1, KindAgent, 0, 9), func(s *Span) { s.Agents = []string{"stranger", "solver", "critic"} }),
				with(at(3, 2, KindOther, 0, 9), func(s *Span) { s.Agents = []string{"stranger"} }),
				answered(at(4, 3, KindCall, 1, 2), "S-0"), answered(at(5, 1, KindCall, 3, 4), "S-1"),
			},
			want: Reading{Agents: map[int]string{0: "solver", 1: "critic"}},
		},
	} {
		var trace Trace
		trace.Add(c.spans)
		if diff := cmp.Diff(c.want, trace.Read(recorded, roles), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Agent Lightning links a reward to a span by what that says.
func TestLinks(t *testing.T) {
	own, other := ID{[16]byte{1}, [8]byte{9}}, ID{[16]byte{2}, [8]byte{3}}
	hexTrace, hexSpan := fmt.Sprintf("%x", other.Trace), fmt.Sprintf("%x", other.Span)
	for _, c := range []struct {
		links [][2]string
		want  Reward
	}{
		{nil, Reward{}},
		{[][2]string{{"lesson", "7"}, {"gen_ai.response.id", "S-1"}}, Reward{Response: "S-1"}},
		{[][2]string{{"span_id", hexSpan}}, Reward{Linked: ID{own.Trace, other.Span}}},
		{[][2]string{{"trace_id", hexTrace}, {"span_id", hexSpan}}, Reward{Linked: other}},
		{[][2]string{{"span_id", hexSpan}, {"trace_id", hexTrace}}, Reward{Linked: other}},
		{[][2]string{{"span_id", "abc"}}, Reward{Response: "link:span_id"}},
		{[][2]string{{"lesson", "7"}}, Reward{Response: "link:lesson"}},
	} {
		a := attributes{}
		for i, l := range c.links {
			for j, name := range []string{"key", "value"} {
				a[fmt.Sprintf("agentlightning.link.%d.%s_match", i, name)] = &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: l[j]}}
			}
		}
		if got := (&Span{ID: own}).link(a); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.links, got, c.want)
		}
	}
}

// However spans come, and however often, they say the same.
func TestOrderMakesNoDifference(t *testing.T) {
	var all []Span
	for _, name := range dialectNames {
		spans, _, err := Decode(jsonType, "", payload(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for i := range spans { // a trace for each
			spans[i].ID.Trace[15] = byte(len(name))
		}
		all = append(all, spans...)
	}
	var whole Trace
	whole.Add(all)
	want := whole.Read(recorded, roles)
	rapid.Check(t, func(t *rapid.T) {
		shuffled := append(append([]Span(nil), all...), all[:rapid.IntRange(0, len(all)).Draw(t, "again")]...)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		var trace Trace
		for len(shuffled) > 0 {
			n := 1 + random.IntN(len(shuffled))
			if rejected := trace.Add(shuffled[:n]); rejected > 0 {
				t.Fatal(rejected, " spans rejected")
			}
			shuffled = shuffled[n:]
		}
		if diff := cmp.Diff(want, trace.Read(recorded, roles)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestATraceIsBounded(t *testing.T) {
	spans := make([]Span, MaxSpans+7)
	for i := range spans {
		binary.BigEndian.PutUint64(spans[i].ID.Span[:], uint64(i+1))
	}
	var trace Trace
	if rejected := trace.Add(spans); rejected != 7 || trace.Len() != MaxSpans {
		t.Errorf("%d rejected, %d kept", rejected, trace.Len())
	}
	if rejected := trace.Add(spans[:3]); rejected != 0 {
		t.Errorf("%d of those that it has are rejected", rejected)
	}
}

// What an export brought besides is not kept with the spans that were new in it.
func TestATraceKeepsItsSpansAlone(t *testing.T) {
	export := []Span{{ID: ID{Span: [8]byte{1}}, Kind: KindCall}, {ID: ID{Span: [8]byte{2}}}}
	var trace Trace
	trace.Add(export)
	clear(export)
	if got := trace.sorted(); len(got) != 2 || got[0].Kind != KindCall {
		t.Errorf("the trace holds %v", got)
	}
}
