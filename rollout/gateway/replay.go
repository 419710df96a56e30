package gateway

import (
	"crypto/sha256"
	"slices"
)

// exchange is a request and, once done is closed, its answer or fault.
type exchange struct {
	done   chan struct{}
	answer *answer
	fault  *apiError
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

// exchanges are a rollout's, by what was asked, in the order in which they began. Those that failed are not kept.
type exchanges map[bodyKey][]*exchange

// retried is the exchange that a retry belongs to, or nil: the first whose client went away without an answer, else
// the last. The retry takes the answer over.
func (e exchanges) retried(key bodyKey) *exchange {
	all := e[key]
	if len(all) == 0 {
		return nil
	}
	for _, x := range all {
		if x.lost {
			x.lost = false
			return x
		}
	}
	return all[len(all)-1]
}

// begin adds a new exchange.
func (e exchanges) begin(key bodyKey) *exchange {
	x := &exchange{done: make(chan struct{})}
	e[key] = append(e[key], x)
	return x
}

// forget removes an exchange that failed: who tries again gets a new one.
func (e exchanges) forget(key bodyKey, x *exchange) {
	if e[key] = slices.DeleteFunc(e[key], func(y *exchange) bool { return y == x }); len(e[key]) == 0 {
		delete(e, key)
	}
}
