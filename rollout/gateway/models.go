package gateway

import (
	"net/http"
	"slices"
)

// model is a model in OpenAI's form.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// models are what an agent may ask for: the policy, and the policy in each of the environment's roles.
func (s *Session) models() []model {
	all := []model{{modelName, "model", s.opened.Unix(), "lightswarm"}}
	for _, name := range s.agents {
		all = append(all, model{modelPrefix + name, "model", s.opened.Unix(), "lightswarm"})
	}
	return all
}

// serveModels answers with all models, or with the one of this id.
func (s *Session) serveModels(w http.ResponseWriter, id string, one bool) *apiError {
	all := s.models()
	if !one {
		send(w, http.StatusOK, mustJSON(struct {
			Object string  `json:"object"`
			Data   []model `json:"data"`
		}{"list", all}))
		return nil
	}
	at := slices.IndexFunc(all, func(m model) bool { return m.ID == id })
	if at < 0 {
		e := invalid("model", "there is no model %q; the policy is %q", clip(id), modelName)
		e.Status, e.Code, e.NoRetry = http.StatusNotFound, "model_not_found", true
		return e
	}
	send(w, http.StatusOK, mustJSON(all[at]))
	return nil
}
