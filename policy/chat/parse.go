package chat

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// ErrBadCompletion says that a completion is no message. The error is a *CompletionError, which says why.
var ErrBadCompletion = errors.New("bad completion")

// Fault is why a completion is no message. The spellings are stable: they are counted and shown.
type Fault string

// The faults.
const (
	Unfinished      Fault = "unfinished"        // it does not end in <|end|>
	AfterEnd        Fault = "after_end"         // tokens come after <|end|>
	UnknownToken    Fault = "unknown_token"     // an id that the tokenizer lacks
	StrayToken      Fault = "stray_token"       // a special token that does not belong there
	CallWithoutArgs Fault = "call_without_args" // <|call|> without <|args|>
	BadToolName     Fault = "bad_tool_name"     // see ValidToolName
	TooManyCalls    Fault = "too_many_calls"    // more than MaxToolCalls
	InvalidText     Fault = "invalid_text"      // bytes that are not UTF-8
)

// MaxToolCalls bounds the tool calls of one message.
const MaxToolCalls = 32

// CompletionError is ErrBadCompletion with the reason.
type CompletionError struct {
	Fault Fault
	// At is the position of the token in the completion at which the fault shows.
	At int
}

// Error says what is wrong and where.
func (e *CompletionError) Error() string {
	return fmt.Sprintf("%s: %s at token %d", ErrBadCompletion, e.Fault, e.At)
}

// Unwrap is ErrBadCompletion.
func (e *CompletionError) Unwrap() error { return ErrBadCompletion }

// Parse is the assistant message that a completion says. Any ids are allowed. Tool calls get the ids "call_0",
// "call_1" and so on, and Tokens is a copy of the completion.
//
// When it fails, with a *CompletionError, the message still has Tokens, and as Content the completion's text as far
// as it goes, special tokens spelled out and broken UTF-8 replaced by U+FFFD: for people and logs, and for a
// conversation that goes on in spite of it.
func (t *Template) Parse(completion []int32) (Message, error) {
	m := Message{Role: Assistant, Tokens: append([]int32{}, completion...)}
	if err := t.parse(&m, completion); err != nil {
		m.ToolCalls = nil
		text := completion
		if n := len(text); n > 0 && text[n-1] == t.end {
			text = text[:n-1]
		}
		m.Content = string([]rune(t.tok.Decode(text)))
		return m, err
	}
	return m, nil
}

// parse fills in m's content and calls. It walks the completion from mark to mark.
func (t *Template) parse(m *Message, ids []int32) error {
	// open is the mark whose text is being read: end for the content before the first call.
	open, from := t.end, 0
	for at, id := range ids {
		if id < 0 || int(id) >= t.tok.VocabSize() {
			return &CompletionError{UnknownToken, at}
		}
		if !t.tok.IsSpecial(id) {
			continue
		}
		if open == t.call && id != t.args {
			return &CompletionError{CallWithoutArgs, at}
		}
		if open != t.call && id != t.call && id != t.end {
			return &CompletionError{StrayToken, at}
		}
		text := t.tok.Decode(ids[from:at])
		if !utf8.ValidString(text) {
			return &CompletionError{InvalidText, at}
		}
		switch open {
		case t.end:
			m.Content = text
		case t.call:
			if !ValidToolName(text) {
				return &CompletionError{BadToolName, at}
			}
			if len(m.ToolCalls) == MaxToolCalls {
				return &CompletionError{TooManyCalls, at}
			}
			m.ToolCalls = append(m.ToolCalls, ToolCall{ID: "call_" + strconv.Itoa(len(m.ToolCalls)), Name: text})
		case t.args:
			m.ToolCalls[len(m.ToolCalls)-1].Arguments = text
		}
		if id == t.end {
			if at != len(ids)-1 {
				return &CompletionError{AfterEnd, at + 1}
			}
			return nil
		}
		open, from = id, at+1
	}
	return &CompletionError{Unfinished, len(ids)}
}
