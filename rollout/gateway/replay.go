package gateway

import (
	"crypto/sha256"
	"net/http"
	"slices"
)

// exchange is a request and, once done is closed, its answer or fault.
type exchange struct {
	done     chan struct{}
	progress *progress
	answer   *answer
	fault    *apiError
	// lost says that the client went away before it had the answer. Guarded by the session's mutex.
	lost bool
}

// bodyKey identifies requests that ask the same of the same agent.
type bodyKey [sha256.Size]byte

func newBodyKey(endpoint, agent string, body []byte) bodyKey {
	h := sha256.New()
	h.Write([]byte(endpoint + "\x00" + agent + "\x00"))
	h.Write(body)
	return bodyKey(h.Sum(nil))
}

// exchanges are a rollout's, by what was asked.
type exchanges map[bodyKey]*repeats

// repeats are the exchanges that ask the same, in the order in which they began.
type repeats struct {
	kept []*exchange // all but those that failed
	// failed is how far those got that failed in a way after which clients try again, and have not been tried again yet.
	failed []*progress
}

// retried is the exchange that a retry belongs to, or nil if it has to be a new one: the first whose client went away
// without an answer, else a new one for one that failed, else the last. The retry takes the answer over.
func (e exchanges) retried(key bodyKey) *exchange {
	all := e[key]
	if all == nil {
		return nil
	}
	for _, x := range all.kept {
		if x.lost {
			x.lost = false
			return x
		}
	}
	if len(all.failed) > 0 {
		return nil
	}
	return all.kept[len(all.kept)-1]
}

// begin adds a new exchange. That of a retry goes on where one that failed ended.
func (e exchanges) begin(key bodyKey, retry bool) *exchange {
	if e[key] == nil {
		e[key] = &repeats{}
	}
	all := e[key]
	x := &exchange{done: make(chan struct{}), progress: &progress{}}
	if retry && len(all.failed) > 0 {
		x.progress, all.failed = all.failed[0], all.failed[1:]
	}
	all.kept = append(all.kept, x)
	return x
}

// forget removes an exchange that failed: who tries again gets a new one, and not what another one was answered.
func (e exchanges) forget(key bodyKey, x *exchange) {
	all := e[key]
	all.kept = slices.DeleteFunc(all.kept, func(y *exchange) bool { return y == x })
	if x.fault.Status >= http.StatusInternalServerError && !x.fault.NoRetry {
		all.failed = append(all.failed, x.progress)
	}
	if len(all.kept) == 0 && len(all.failed) == 0 {
		delete(e, key)
	}
}
