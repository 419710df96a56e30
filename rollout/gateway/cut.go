package gateway

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
)

// visible is what an agent gets to see of a reply; err is what came with it. What the request asks for beyond the
// network's rules (stop texts, a token limit, no tool calls or a single one) shortens what is seen and never what is
// recorded: a completion in a bundle ends at a stop token or at the network's limit. whole says that nothing is left
// out, so that the reply's tokens are what the agent saw.
func visible(q *request, r agent.Reply, err error) (c choice, whole bool) {
	c = choice{
		Message:  chat.Message{Role: chat.Assistant, Content: r.Message.Content},
		Finish:   finishStop,
		Tokens:   r.Message.Tokens,
		LogProbs: r.LogProbs,
		Pieces:   r.Pieces,
	}
	if errors.Is(err, agent.ErrCut) {
		c.Finish = finishLength
	}
	calls := r.Message.ToolCalls
	if q.Choice.Kind == chooseNone && len(calls) > 0 {
		c.Message.Content, calls = join(c.Pieces[:len(c.Pieces)-1]), nil // all but the mark of the end
	}
	whole = true
	if at, length := firstStop(c.Message.Content, q.Stop); at >= 0 {
		c.keep(tokensFor(c.Pieces, at+length))
		c.Message.Content, calls = c.Message.Content[:at], nil
		c.Finish, whole = finishStop, false
	}
	if n := q.MaxTokens; n > 0 && n < len(c.Tokens) {
		c.keep(n)
		c.Message.Content, calls = join(c.Pieces), nil
		c.Finish, whole = finishLength, false
	}
	if q.SingleCall && len(calls) > 1 {
		calls, whole = calls[:1], false
	}
	for i, call := range calls {
		call.ID = fmt.Sprintf("call_%d_%d", r.Call, i)
		c.Message.ToolCalls = append(c.Message.ToolCalls, call)
	}
	if len(calls) > 0 && c.Finish == finishStop {
		c.Finish = finishToolCalls
	}
	return c, whole
}

// keep leaves c its first n tokens.
func (c *choice) keep(n int) {
	c.Tokens, c.LogProbs, c.Pieces = c.Tokens[:n], c.LogProbs[:n], c.Pieces[:n]
}

// firstStop finds the stop text that is complete first, the longest of those that end together; at is -1 if there is none.
func firstStop(text string, stops []string) (at, length int) {
	at = -1
	for _, stop := range stops {
		i := strings.Index(text, stop)
		if stop == "" || i < 0 {
			continue
		}
		if end := i + len(stop); at < 0 || end < at+length || end == at+length && i < at {
			at, length = i, len(stop)
		}
	}
	return at, length
}

// tokensFor is how many tokens it takes to write n bytes.
func tokensFor(pieces []string, n int) int {
	for i, p := range pieces {
		if n -= len(p); n <= 0 {
			return i + 1
		}
	}
	return len(pieces)
}

// join is the text of tokens, with U+FFFD for what is no UTF-8.
func join(pieces []string) string {
	return strings.ToValidUTF8(strings.Join(pieces, ""), "\uFFFD")
}
