package gateway

import "encoding/json"

// responsesEvent is one event of a streamed response. Every event has its type and number; of the other fields those
// that its type has are set.
type responsesEvent struct {
	Type     string `json:"type"`
	Sequence int    `json:"sequence_number"`

	Response     *response        `json:"response,omitempty"`
	ItemID       string           `json:"item_id,omitempty"`
	OutputIndex  *int             `json:"output_index,omitempty"`
	ContentIndex *int             `json:"content_index,omitempty"`
	Item         *outputItem      `json:"item,omitempty"`
	Part         *outputText      `json:"part,omitempty"`
	Delta        *string          `json:"delta,omitempty"`
	Text         *string          `json:"text,omitempty"`
	Name         string           `json:"name,omitempty"`
	Arguments    *string          `json:"arguments,omitempty"`
	LogProbs     *[]outputLogProb `json:"logprobs,omitempty"`
}

// responsesStream numbers the events of one stream. The first failure stays.
type responsesStream struct {
	events []event
	err    error
}

func (s *responsesStream) add(e responsesEvent) {
	e.Sequence = len(s.events)
	data, err := json.Marshal(e)
	if err != nil && s.err == nil {
		s.err = err
	}
	s.events = append(s.events, event{Name: e.Type, Data: data})
}

// stream implements dialect. An answer is whole when its stream begins, so each text and each call's arguments are one
// delta.
func (responses) stream(r *request, a *answer) ([]event, error) {
	whole := newResponse(r, a)
	begun := whole
	begun.Status, begun.IncompleteDetails, begun.Output, begun.Usage = statusInProgress, nil, []outputItem{}, nil
	var s responsesStream
	s.add(responsesEvent{Type: "response.created", Response: &begun})
	s.add(responsesEvent{Type: "response.in_progress", Response: &begun})
	for i, item := range whole.Output {
		s.item(i, item)
	}
	s.add(responsesEvent{Type: "response." + whole.Status, Response: &whole})
	return s.events, s.err
}

// item adds the events of one output item.
func (s *responsesStream) item(index int, whole outputItem) {
	begun := whole
	begun.Status = statusInProgress
	if m := whole.outputMessage; m != nil {
		begun.outputMessage = &outputMessage{Role: m.Role, Content: []outputText{}}
		s.add(responsesEvent{Type: "response.output_item.added", OutputIndex: &index, Item: &begun})
		for i, text := range m.Content {
			s.text(whole.ID, index, i, text)
		}
	}
	if c := whole.outputCall; c != nil {
		begun.outputCall = &outputCall{CallID: c.CallID, Name: c.Name}
		s.add(responsesEvent{Type: "response.output_item.added", OutputIndex: &index, Item: &begun})
		if c.Arguments != "" {
			s.add(responsesEvent{
				Type: "response.function_call_arguments.delta", ItemID: whole.ID, OutputIndex: &index, Delta: &c.Arguments,
			})
		}
		s.add(responsesEvent{
			Type: "response.function_call_arguments.done", ItemID: whole.ID, OutputIndex: &index, Name: c.Name, Arguments: &c.Arguments,
		})
	}
	s.add(responsesEvent{Type: "response.output_item.done", OutputIndex: &index, Item: &whole})
}

// text adds the events of one part of a message.
func (s *responsesStream) text(id string, index, part int, whole outputText) {
	begun := whole
	begun.Text, begun.LogProbs = "", []outputLogProb{}
	at := responsesEvent{ItemID: id, OutputIndex: &index, ContentIndex: &part}
	add := func(kind string, set func(*responsesEvent)) {
		e := at
		e.Type = "response." + kind
		set(&e)
		s.add(e)
	}
	add("content_part.added", func(e *responsesEvent) { e.Part = &begun })
	if whole.Text != "" {
		add("output_text.delta", func(e *responsesEvent) { e.Delta, e.LogProbs = &whole.Text, &whole.LogProbs })
	}
	add("output_text.done", func(e *responsesEvent) { e.Text, e.LogProbs = &whole.Text, &whole.LogProbs })
	add("content_part.done", func(e *responsesEvent) { e.Part = &whole })
}
