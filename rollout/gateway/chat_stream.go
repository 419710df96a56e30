package gateway

// chatDelta is what a chunk adds to a message.
type chatDelta struct {
	Role      string              `json:"role,omitempty"`
	Content   *string             `json:"content,omitempty"`
	ToolCalls []chatToolCallDelta `json:"tool_calls,omitempty"`
}

// chatToolCallDelta adds to the tool call of an index: first its id and name, then its arguments.
type chatToolCallDelta struct {
	Index    int                   `json:"index"`
	ID       string                `json:"id,omitempty"`
	Type     string                `json:"type,omitempty"`
	Function chatFunctionCallDelta `json:"function"`
}

type chatFunctionCallDelta struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// doneMark ends a stream of OpenAI's first APIs.
var doneMark = event{Data: []byte("[DONE]")}

// stream implements dialect. An answer is whole when its stream begins, so its text and each call's arguments are one
// delta.
func (chatCompletions) stream(r *request, a *answer) ([]event, error) {
	var events []event
	chunk := func(c chatCompletion) { events = append(events, event{Data: mustJSON(c)}) }
	for i, c := range a.Choices {
		delta := func(d chatDelta, logProbs *chatLogProbs, finish *string) {
			out := newChatCompletion(a, "chat.completion.chunk")
			out.Choices = append(out.Choices, chatChoice{Index: i, Delta: &d, LogProbs: logProbs, FinishReason: finish})
			chunk(out)
		}
		empty := ""
		delta(chatDelta{Role: "assistant", Content: &empty}, nil, nil)
		logProbs := c.chatLogProbs(r)
		if c.Message.Content != "" || logProbs != nil {
			delta(chatDelta{Content: &c.Message.Content}, logProbs, nil)
		}
		for j, call := range newChatToolCalls(c) {
			delta(chatDelta{ToolCalls: []chatToolCallDelta{{
				Index: j, ID: call.ID, Type: call.Type, Function: chatFunctionCallDelta{Name: call.Function.Name},
			}}}, nil, nil)
			delta(chatDelta{ToolCalls: []chatToolCallDelta{{
				Index: j, Function: chatFunctionCallDelta{Arguments: call.Function.Arguments},
			}}}, nil, nil)
		}
		delta(chatDelta{}, nil, c.Finish.openAI())
	}
	if r.IncludeUsage {
		last := newChatCompletion(a, "chat.completion.chunk")
		last.Usage = a.Usage.chat()
		chunk(last)
	}
	return append(events, doneMark), nil
}
