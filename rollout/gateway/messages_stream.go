package gateway

import "encoding/json"

// messageDelta is what an event adds to a block or to the message.
type messageDelta struct {
	Type        string  `json:"type,omitempty"`
	Text        *string `json:"text,omitempty"`
	PartialJSON *string `json:"partial_json,omitempty"`
	*messageEnd
}

type messageEnd struct {
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

// messageEvent is one event of a streamed message: its type, and the fields that this type has.
type messageEvent struct {
	Type    string        `json:"type"`
	Message *message      `json:"message,omitempty"`
	Index   *int          `json:"index,omitempty"`
	Block   *messageBlock `json:"content_block,omitempty"`
	Delta   *messageDelta `json:"delta,omitempty"`
	Usage   *messageUsage `json:"usage,omitempty"`
}

// stream implements dialect. An answer is whole when its stream begins, so each block is one delta.
func (messages) stream(_ *request, a *answer) ([]event, error) {
	whole := newMessage(a)
	begun := whole
	begun.Content, begun.StopReason, begun.Usage.OutputTokens = []messageBlock{}, nil, 0
	list := []messageEvent{{Type: "message_start", Message: &begun}}
	for i, block := range whole.Content {
		empty, delta := block, messageDelta{}
		if t := block.messageText; t != nil {
			empty.messageText = &messageText{}
			delta = messageDelta{Type: "text_delta", Text: &t.Text}
		}
		if u := block.messageToolUse; u != nil {
			empty.messageToolUse = &messageToolUse{ID: u.ID, Name: u.Name, Input: json.RawMessage("{}")}
			partial := string(u.Input)
			delta = messageDelta{Type: "input_json_delta", PartialJSON: &partial}
		}
		list = append(list,
			messageEvent{Type: "content_block_start", Index: &i, Block: &empty},
			messageEvent{Type: "content_block_delta", Index: &i, Delta: &delta},
			messageEvent{Type: "content_block_stop", Index: &i})
	}
	list = append(list,
		messageEvent{Type: "message_delta", Delta: &messageDelta{messageEnd: &messageEnd{StopReason: whole.StopReason}}, Usage: &whole.Usage},
		messageEvent{Type: "message_stop"})
	events := make([]event, len(list))
	for i, e := range list {
		data, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		events[i] = event{Name: e.Type, Data: data}
	}
	return events, nil
}
