package gateway

import (
	"encoding/json"

	"github.com/lightswarm/lightswarm/policy/chat"
)

// response is the body of an answer. Fields that clients' types require are always there, null where the agent's
// setting decides nothing here.
type response struct {
	ID                string              `json:"id"`
	Object            string              `json:"object"`
	CreatedAt         int64               `json:"created_at"`
	Status            string              `json:"status"`
	Error             *struct{}           `json:"error"`
	IncompleteDetails *incompleteDetails  `json:"incomplete_details"`
	Instructions      *string             `json:"instructions"`
	MaxOutputTokens   *int                `json:"max_output_tokens"`
	Metadata          struct{}            `json:"metadata"`
	Model             string              `json:"model"`
	Output            []outputItem        `json:"output"`
	ParallelToolCalls bool                `json:"parallel_tool_calls"`
	PreviousResponse  *string             `json:"previous_response_id"`
	Store             bool                `json:"store"`
	Temperature       *float64            `json:"temperature"`
	Text              responsesTextFormat `json:"text"`
	ToolChoice        any                 `json:"tool_choice"`
	Tools             []responsesTool     `json:"tools"`
	TopP              *float64            `json:"top_p"`
	Truncation        string              `json:"truncation"`
	Usage             *responsesUsage     `json:"usage"`
}

type incompleteDetails struct {
	Reason string `json:"reason"`
}

type responsesTextFormat struct {
	Format struct {
		Type   string          `json:"type"`
		Name   string          `json:"name,omitempty"`
		Schema json.RawMessage `json:"schema,omitempty"`
	} `json:"format"`
}

type responsesUsage struct {
	InputTokens        int `json:"input_tokens"`
	InputTokensDetails struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens        int `json:"output_tokens"`
	OutputTokensDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int `json:"total_tokens"`
}

// outputItem is a message with one text, or one function call.
type outputItem struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`
	*outputMessage
	*outputCall
}

type outputMessage struct {
	Role    string       `json:"role"`
	Content []outputText `json:"content"`
}

type outputCall struct {
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type outputText struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Annotations []struct{}      `json:"annotations"`
	LogProbs    []outputLogProb `json:"logprobs"`
}

// outputLogProb is the log-prob of one sampled token.
type outputLogProb struct {
	Token       string     `json:"token"`
	Bytes       []int      `json:"bytes"`
	LogProb     float32    `json:"logprob"`
	TopLogProbs []struct{} `json:"top_logprobs"`
}

const (
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusInProgress = "in_progress"
)

// encode implements dialect.
func (responses) encode(r *request, a *answer) ([]byte, error) {
	return json.Marshal(newResponse(r, a))
}

// fault implements dialect.
func (responses) fault(e *apiError) []byte { return errorBody(e) }

// newResponse is the response that an answer makes. It says of the request what the gateway has understood of it.
func newResponse(r *request, a *answer) response {
	out := response{
		ID: "resp_" + a.ID, Object: "response", CreatedAt: a.Created, Status: statusCompleted, Model: a.Model,
		Output: outputItems(r, a), ParallelToolCalls: !r.SingleCall, ToolChoice: r.Choice.responses(),
		Tools: []responsesTool{}, Truncation: "disabled", Usage: &responsesUsage{},
	}
	if a.Choices[0].Finish == finishLength {
		out.Status, out.IncompleteDetails = statusIncomplete, &incompleteDetails{"max_output_tokens"}
	}
	if r.MaxTokens > 0 {
		out.MaxOutputTokens = &r.MaxTokens
	}
	out.Text.Format.Type = r.Format.responses()
	out.Text.Format.Name, out.Text.Format.Schema = r.Format.Name, r.Format.Schema
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, newResponsesTool(t))
	}
	out.Usage.InputTokens, out.Usage.OutputTokens = a.Usage.Prompt, a.Usage.Completion
	out.Usage.TotalTokens = a.Usage.Prompt + a.Usage.Completion
	return out
}

// outputItems are the items of an answer: its text, then its calls.
func outputItems(r *request, a *answer) []outputItem {
	c := a.Choices[0]
	status := statusCompleted
	if c.Finish == finishLength {
		status = statusIncomplete
	}
	var items []outputItem
	if c.Message.Content != "" || len(c.Message.ToolCalls) == 0 {
		text := outputText{Type: "output_text", Text: c.Message.Content, Annotations: []struct{}{}, LogProbs: []outputLogProb{}}
		if r.LogProbs {
			text.LogProbs = c.responsesLogProbs()
		}
		items = append(items, outputItem{
			ID: textItemID(a), Type: "message", Status: status,
			outputMessage: &outputMessage{Role: "assistant", Content: []outputText{text}},
		})
	}
	for i, call := range c.Message.ToolCalls {
		items = append(items, outputItem{
			ID: callItemID(a, i), Type: "function_call", Status: status,
			outputCall: &outputCall{CallID: call.ID, Name: call.Name, Arguments: call.Arguments},
		})
	}
	return items
}

// responsesLogProbs are those of all tokens of the completion, the marks of its template among them.
func (c choice) responsesLogProbs() []outputLogProb {
	out := make([]outputLogProb, len(c.LogProbs))
	for i, p := range c.LogProbs {
		out[i] = outputLogProb{Token: c.Pieces[i], Bytes: []int{}, LogProb: p, TopLogProbs: []struct{}{}}
		for _, b := range []byte(c.Pieces[i]) {
			out[i].Bytes = append(out[i].Bytes, int(b))
		}
	}
	return out
}

func newResponsesTool(t chat.Tool) responsesTool {
	out := responsesTool{Type: "function", Name: t.Name, Description: t.Description}
	if t.Parameters != "" {
		out.Parameters = json.RawMessage(t.Parameters)
	}
	return out
}

// responses is the choice as a response repeats it.
func (c toolChoice) responses() any {
	switch c.Kind {
	case chooseNone:
		return "none"
	case chooseRequired:
		return "required"
	case chooseNamed:
		return map[string]string{"type": "function", "name": c.Name}
	default:
		return "auto"
	}
}

// responses is the format's type as a response repeats it.
func (f format) responses() string {
	switch f.Kind {
	case formatObject:
		return "json_object"
	case formatSchema:
		return "json_schema"
	default:
		return "text"
	}
}
