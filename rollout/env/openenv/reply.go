package openenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lightswarm/lightswarm/rollout/env/protocol"
)

// message is what is sent. Data is left out of messages that have none: servers refuse it there.
type message struct {
	Type string `json:"type"`
	Data any    `json:"data,omitempty"`
}

// The kinds of messages, and the codes of errors that are told apart.
const (
	sendReset = "reset"
	sendStep  = "step"
	sendState = "state"
	sendClose = "close"

	codeCapacity   = "CAPACITY_REACHED"
	codeFactory    = "FACTORY_ERROR"
	codeSession    = "SESSION_ERROR"
	codeValidation = "VALIDATION_ERROR"
)

// object is a JSON object whose fields are not looked into yet.
type object map[string]json.RawMessage

// objectOf reads a JSON object; it is nil if raw is none.
func objectOf(raw []byte) object {
	var o object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// reply is what a server answers. One of observation, state and trouble is not nil.
type reply struct {
	observation object
	reward      *float64
	done        bool
	state       object
	trouble     *trouble
}

// trouble is an error that a server reports.
type trouble struct {
	code    string
	message string
	refused []refusal // of codeValidation
}

// refusal is what a server does not accept in a message.
type refusal struct {
	field  string // the outermost one; empty if it is the whole
	within bool   // something within the field, not the field itself
	kind   string // pydantic's, such as "missing" or "extra_forbidden"
	text   string
}

// maxRefusals is how many of them are read.
const maxRefusals = 8

// decodeReply reads a message. Fields that it does not know are passed over: servers add some.
func decodeReply(raw []byte) (reply, error) {
	if !utf8.Valid(raw) {
		return reply{}, errors.New("it is not UTF-8")
	}
	var m struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return reply{}, err
	}
	switch m.Type {
	case "observation":
		return decodeObservation(m.Data)
	case "state":
		var r reply
		err := json.Unmarshal(m.Data, &r.state)
		if err == nil && r.state == nil {
			err = errors.New("the state is no object")
		}
		return r, err
	case "error":
		t, err := decodeTrouble(m.Data)
		return reply{trouble: t}, err
	}
	return reply{}, fmt.Errorf("its type is %q", protocol.Clip([]byte(m.Type)))
}

func decodeObservation(data []byte) (reply, error) {
	var o struct {
		Observation object          `json:"observation"`
		Reward      json.RawMessage `json:"reward"`
		Done        *bool           `json:"done"`
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return reply{}, err
	}
	switch {
	case o.Observation == nil:
		return reply{}, errors.New("there is no observation in it")
	case o.Done == nil:
		return reply{}, errors.New("it does not say whether the episode is done")
	}
	r := reply{observation: o.Observation, done: *o.Done}
	switch text := string(o.Reward); text {
	case "", "null":
	case "true", "false": // OpenEnv's rewards may be truth values
		r.reward = new(float64)
		if text == "true" {
			*r.reward = 1
		}
	default:
		if err := json.Unmarshal(o.Reward, &r.reward); err != nil {
			return reply{}, fmt.Errorf("its reward is %s, which is no number", protocol.Clip(o.Reward))
		}
	}
	return r, nil
}

func decodeTrouble(data []byte) (*trouble, error) {
	var e struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Errors  []struct {
			Type string `json:"type"`
			Loc  []any  `json:"loc"`
			Msg  string `json:"msg"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, err
	}
	if e.Code == "" && e.Message == "" {
		return nil, errors.New("it reports an error and does not say which")
	}
	t := &trouble{code: e.Code, message: protocol.Clip([]byte(e.Message))}
	for i, r := range e.Errors {
		if i == maxRefusals {
			break
		}
		list := make([]string, len(r.Loc))
		for j, part := range r.Loc {
			list[j] = fmt.Sprint(part)
		}
		where, why := strings.Join(list, "."), protocol.Clip([]byte(r.Msg))
		if where != "" {
			why = protocol.Clip([]byte(where)) + ": " + why
		}
		f := refusal{within: len(list) > 1, kind: r.Type, text: why}
		if len(list) > 0 {
			f.field = list[0]
		}
		t.refused = append(t.refused, f)
	}
	return t, nil
}

// String is for errors, and for an agent whose action was refused.
func (t *trouble) String() string {
	texts := []string{t.message}
	if len(t.refused) > 0 {
		texts = nil
	}
	for _, r := range t.refused {
		texts = append(texts, r.text)
	}
	return strings.Join(texts, "; ")
}

// blames says whether an action was refused only for what somebody put into fields of theirs, whatever that is.
func (t *trouble) blames(theirs func(field string) bool) bool {
	if t.code != codeValidation || len(t.refused) == 0 {
		return false
	}
	for _, r := range t.refused {
		// That the server has no such field is not their fault: they put things only where they may.
		if r.kind == "extra_forbidden" && !r.within || !theirs(r.field) {
			return false
		}
	}
	return true
}

// ends says whether the server has closed the connection, or does.
func (t *trouble) ends() bool {
	return t.code == codeCapacity || t.code == codeFactory || t.code == codeSession
}

// failure is a server's trouble as the environment's failure.
func (t *trouble) failure() *protocol.Failure {
	reason := protocol.ReasonReported
	if t.ends() {
		reason = protocol.ReasonServer
	}
	return &protocol.Failure{Reason: reason, Detail: fmt.Sprintf("the server reports %s: %s", protocol.Clip([]byte(t.code)), t)}
}

// plain is an error in which there may be something that a server sent: not longer than an error should be, and harmless.
func plain(err error) string {
	const most = 300
	text := err.Error()
	if len(text) > most {
		text = text[:most] + "…"
	}
	return protocol.Harmless(text)
}

// refusedSession is the error of a trouble that ends the session.
func refusedSession(t *trouble) error {
	if t.code == codeCapacity {
		return &busy{t}
	}
	return t.failure()
}
