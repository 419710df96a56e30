package lightning

import (
	"fmt"
	"net/http"

	"github.com/lightswarm/lightswarm/rollout/telemetry"
)

// health says that the store is there; clients ask before they try something again.
func (a *Agent) health(*http.Request, []byte) (int, any, error) {
	return http.StatusOK, map[string]string{"status": "ok"}, nil
}

// latestResources are none: every rollout has its own.
func (a *Agent) latestResources(*http.Request, []byte) (int, any, error) {
	return http.StatusOK, nil, nil
}

// resources are what an attempt works with. Those of one that does not count are null: its runner then leaves it.
func (a *Agent) resources(r *http.Request, _ []byte) (int, any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o, begun, ok := a.queue.fetch(a.now(), r.PathValue("resources"))
	if !ok {
		return http.StatusOK, nil, nil
	}
	return http.StatusOK, resourcesOf(o, begun), nil
}

// find is a task and its attempt by the path of a request; without an id the attempt is the last, nil for none.
func (a *Agent) find(r *http.Request) (*task, *attempt, error) {
	rollout, id := r.PathValue("rollout"), r.PathValue("id")
	t, at := a.queue.find(rollout, id)
	switch {
	case t == nil:
		return nil, nil, &fault{http.StatusNotFound, fmt.Sprintf("there is no rollout %.80q", rollout)}
	case id == "":
		return t, t.last(), nil
	case at == nil:
		return nil, nil, &fault{http.StatusNotFound, fmt.Sprintf("rollout %s has no attempt %.80q", t.ID, id)}
	}
	return t, at, nil
}

func (a *Agent) rollout(r *http.Request, _ []byte) (int, any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, _, err := a.find(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, a.object(t), nil
}

func (a *Agent) latestAttempt(r *http.Request, _ []byte) (int, any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, last, err := a.find(r)
	if err != nil || last == nil {
		return http.StatusOK, nil, err
	}
	return http.StatusOK, attemptOf(t, last), nil
}

func (a *Agent) attempts(r *http.Request, _ []byte) (int, any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, _, err := a.find(r)
	if err != nil {
		return 0, nil, err
	}
	list := []attemptObject{}
	for _, at := range t.Attempts {
		list = append(list, attemptOf(t, at))
	}
	return http.StatusOK, map[string]any{"items": list, "limit": -1, "offset": 0, "total": len(list)}, nil
}

// updateAttempt takes how an attempt is. Its end counts once; the same end again is answered as the first time, since a
// client may not have got that answer. All else about an attempt that does not count is refused.
func (a *Agent) updateAttempt(r *http.Request, body []byte) (int, any, error) {
	q, err := decodeUpdate(body)
	if err != nil {
		return 0, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t, at, err := a.find(r)
	if err != nil {
		return 0, nil, err
	}
	var ok bool
	switch q.Status {
	case succeeded, failed, timeout, unresponsive:
		if q.Status != succeeded {
			q.Status = failed // whatever a runner calls it
		}
		ok = a.queue.finish(a.now(), t.ID, at.ID, q.Status) || at.Status == q.Status
		a.wake(t.ID)
	default:
		ok = a.queue.hear(a.now(), t.ID, at.ID)
	}
	if !ok {
		return 0, nil, &fault{http.StatusConflict, fmt.Sprintf("attempt %s of rollout %s counts no more: it is %s, and the rollout %s", at.ID, t.ID, at.Status, t.Status)}
	}
	return http.StatusOK, attemptOf(t, at), nil
}

// addSpan takes a span and gives it back.
func (a *Agent) addSpan(_ *http.Request, body []byte) (int, any, error) {
	span, said, err := a.decodeSpan(body)
	if err != nil {
		return 0, nil, err
	}
	a.mu.Lock()
	_, known := a.queue.number(span.Rollout, said.Sequence)
	a.mu.Unlock()
	if !known {
		return 0, nil, &fault{http.StatusNotFound, fmt.Sprintf("there is no rollout %q", span.Rollout)}
	}
	if a.observe([]telemetry.Span{span}) > 0 {
		return 0, nil, &fault{http.StatusRequestEntityTooLarge, "the rollout's trace has no room for more spans"}
	}
	return http.StatusCreated, said.whole, nil
}

// nextSpan numbers a span.
func (a *Agent) nextSpan(_ *http.Request, body []byte) (int, any, error) {
	q, err := decodeNext(body)
	if err != nil {
		return 0, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	n, ok := a.queue.number(q.Rollout, 0)
	if !ok {
		return 0, nil, &fault{http.StatusNotFound, fmt.Sprintf("there is no rollout %.80q", q.Rollout)}
	}
	a.queue.hear(a.now(), q.Rollout, q.Attempt)
	return http.StatusOK, map[string]int{"sequence_id": n}, nil
}

// updateWorker takes a runner's heartbeat, and says what the runner does.
func (a *Agent) updateWorker(r *http.Request, body []byte) (int, any, error) {
	q, err := decodeHeartbeat(body)
	if err != nil {
		return 0, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	worker := r.PathValue("worker")
	return http.StatusOK, workerOf(worker, q.Stats, now, a.queue.beat(now, worker)), nil
}
