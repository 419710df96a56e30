package gateway

import (
	"strings"
)

// chatIDPrefix begins the id of a chat completion.
const chatIDPrefix = "chatcmpl-"

// chatCompletion is an answer, or a chunk of one.
type chatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *chatUsage   `json:"usage,omitempty"`
}

type chatChoice struct {
	Index        int           `json:"index"`
	Message      *chatAnswer   `json:"message,omitempty"`
	Delta        *chatDelta    `json:"delta,omitempty"`
	LogProbs     *chatLogProbs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
}

// chatAnswer is an assistant's message. Its content is null if there are calls and no text.
type chatAnswer struct {
	Role      string         `json:"role"`
	Content   *string        `json:"content"`
	Refusal   *string        `json:"refusal"`
	ToolCalls []chatToolCall `json:"tool_calls,omitempty"`
}

type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// chatLogProbs are those of all tokens that were sampled, the template's marks included.
type chatLogProbs struct {
	Content []chatLogProb `json:"content"`
	Refusal []chatLogProb `json:"refusal"`
}

// chatLogProb is one sampled token. Others were not considered, so there are no top ones.
type chatLogProb struct {
	Token   string        `json:"token"`
	LogProb float32       `json:"logprob"`
	Bytes   []int         `json:"bytes"`
	Top     []chatLogProb `json:"top_logprobs"`
}

// encode implements dialect.
func (chatCompletions) encode(r *request, a *answer) ([]byte, error) {
	out := newChatCompletion(a, "chat.completion")
	out.Usage = a.Usage.chat()
	for i, c := range a.Choices {
		m := &chatAnswer{Role: "assistant", ToolCalls: newChatToolCalls(c)}
		if c.Message.Content != "" || len(m.ToolCalls) == 0 {
			m.Content = &c.Message.Content
		}
		out.Choices = append(out.Choices, chatChoice{
			Index: i, Message: m, LogProbs: c.chatLogProbs(r), FinishReason: c.Finish.openAI(),
		})
	}
	return mustJSON(out), nil
}

// fault implements dialect.
func (chatCompletions) fault(e *apiError) []byte { return errorBody(e) }

// newChatCompletion is an answer without its choices.
func newChatCompletion(a *answer, object string) chatCompletion {
	return chatCompletion{ID: chatIDPrefix + a.ID, Object: object, Created: a.Created, Model: a.Model, Choices: []chatChoice{}}
}

func newChatToolCalls(c choice) (calls []chatToolCall) {
	for _, call := range c.Message.ToolCalls {
		calls = append(calls, chatToolCall{ID: call.ID, Type: "function", Function: chatFunctionCall{call.Name, call.Arguments}})
	}
	return calls
}

// chat is a usage in OpenAI's first form.
func (u usage) chat() *chatUsage {
	return &chatUsage{u.Prompt, u.Completion, u.Prompt + u.Completion}
}

// openAI is a finish in OpenAI's words.
func (f finish) openAI() *string {
	word := "stop"
	switch f {
	case finishLength:
		word = "length"
	case finishToolCalls:
		word = "tool_calls"
	}
	return &word
}

// chatLogProbs are a choice's, or nil if they were not asked for.
func (c choice) chatLogProbs(r *request) *chatLogProbs {
	if !r.LogProbs {
		return nil
	}
	list := make([]chatLogProb, len(c.Pieces))
	for i, piece := range c.Pieces {
		b := make([]int, len(piece))
		for j := range len(piece) {
			b[j] = int(piece[j])
		}
		list[i] = chatLogProb{Token: strings.ToValidUTF8(piece, "\uFFFD"), LogProb: c.LogProbs[i], Bytes: b, Top: []chatLogProb{}}
	}
	return &chatLogProbs{Content: list}
}
