package gateway

import (
	"bytes"
	"net/http"
	"time"
)

// stream answers a call with server-sent events. As long as the policy works there are comments, which clients skip,
// so that nobody on the way takes the connection for dead. Nothing is written before the first of them or the answer:
// a call that fails soon has its true status.
func (s *Session) stream(w http.ResponseWriter, r *http.Request, d dialect, q *request, x *exchange) *apiError {
	out := &eventWriter{w: w}
	alive := time.NewTicker(s.gateway.options.Keepalive)
	defer alive.Stop()
	for working := true; working; {
		select {
		case <-x.done:
			working = false
		case <-r.Context().Done():
			working = false
		case <-alive.C:
			if out.comment() != nil {
				s.lose(x)
				return nil
			}
		}
	}
	if s.left(r, x) {
		return nil
	}
	fault := x.fault
	var events []event
	if fault == nil {
		var err error
		if events, err = d.stream(q, x.answer); err != nil {
			fault = s.gateway.unencodable(err)
		}
	}
	switch {
	case fault != nil && !out.began:
		return fault
	case fault != nil:
		events = []event{{Name: "error", Data: d.fault(fault)}}
	}
	if out.events(events) != nil {
		s.lose(x)
	}
	return nil
}

// eventWriter writes server-sent events.
type eventWriter struct {
	w     http.ResponseWriter
	began bool
}

// comment writes what clients skip.
func (o *eventWriter) comment() error { return o.write([]byte(": working\n\n")) }

// events writes each event in a piece of its own.
func (o *eventWriter) events(events []event) error {
	for _, e := range events {
		if err := o.write(e.encode()); err != nil {
			return err
		}
	}
	return nil
}

// write sends one piece, with the header before the first.
func (o *eventWriter) write(piece []byte) error {
	if o.began {
		return write(o.w, 0, piece)
	}
	o.began = true
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	return write(o.w, http.StatusOK, piece)
}

// encode is the event on the wire. Data of several lines has a field for each.
func (e event) encode() []byte {
	var b bytes.Buffer
	if e.Name != "" {
		b.WriteString("event: " + e.Name + "\n")
	}
	for line := range bytes.SplitSeq(e.Data, []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}
