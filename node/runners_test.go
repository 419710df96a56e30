package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/node/config"
)

// runner plays rollouts as agentlightning 0.3 does, until ctx ends.
func runner(ctx context.Context, url string) error {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(method, url, key, body string, into any) error {
		q, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
		if err != nil {
			return err
		}
		if key != "" {
			q.Header.Set("Authorization", "Bearer "+key)
		}
		r, err := client.Do(q)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode >= 300 {
			return fmt.Errorf("%s %s: %s", method, q.URL.Path, r.Status)
		}
		return json.NewDecoder(r.Body).Decode(into)
	}
	for {
		var rollouts []struct {
			ID        string `json:"rollout_id"`
			Input     string `json:"input"`
			Resources string `json:"resources_id"`
			Attempt   struct {
				ID string `json:"attempt_id"`
			} `json:"attempt"`
		}
		if err := ask("POST", url+"/queues/rollouts/dequeue", "", `{"limit":1,"worker_id":"Worker-0"}`, &rollouts); err != nil {
			return err
		}
		for _, r := range rollouts {
			var update struct {
				Resources struct {
					LLM struct {
						Endpoint string `json:"endpoint"`
						Key      string `json:"api_key"`
					} `json:"main_llm"`
				} `json:"resources"`
			}
			if err := ask("GET", url+"/resources/"+r.Resources, "", "", &update); err != nil {
				return err
			}
			question, _ := json.Marshal(r.Input)
			body := fmt.Sprintf(`{"model":"policy","messages":[{"role":"user","content":%s}]}`, question)
			var ignored any
			if err := ask("POST", update.Resources.LLM.Endpoint+"/chat/completions", update.Resources.LLM.Key, body, &ignored); err != nil {
				return err
			}
			if err := ask("POST", url+"/rollouts/"+r.ID+"/attempts/"+r.Attempt.ID, "", `{"status":"succeeded"}`, &ignored); err != nil {
				return err
			}
		}
	}
}

// A volunteer draws no task before a runner of Agent Lightning has connected, and contributes to training with it.
func TestRunnersPlayRollouts(t *testing.T) {
	c := settings(config.RoleLearner)
	c.Learner.Steps, c.Learner.Groups = 1, 2
	o := options(t, c)
	o.Found = parityNetwork(t)
	o.Found.Evaluation.Tasks = 4
	founder := start(t, o)

	joining := join(t, founder, config.RoleRollout)
	joining.Folder = filepath.Join(t.TempDir(), "volunteer")
	joining.Config.Rollout.Agent.Lightning = "127.0.0.1:0"
	volunteer := start(t, joining)
	volunteer.until("the volunteer waits for a runner", func() bool { return strings.HasPrefix(volunteer.Status().Phase, "waiting for a runner") })
	if s := volunteer.Status().Rollout; s.Total.Rollouts > 0 || s.Agent.Started+uint64(s.Agent.Waiting) > 0 {
		t.Errorf("it has begun without one: %+v", s)
	}
	file := config.View(joining.Folder).LightningFile()
	environ, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	variables := map[string]string{}
	for line := range strings.Lines(string(environ)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		variables[name] = value
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- runner(ctx, "http://"+variables["AGL_SERVER_HOST"]+":"+variables["AGL_SERVER_PORT"]+"/v1/agl")
	}()
	founder.until("the learner is finished", func() bool { return founder.Status().Learner.Finished })
	select {
	case err := <-ended:
		t.Errorf("the runner ended: %v", err)
	default:
		cancel()
		<-ended
	}
	if accepted := founder.Status().Learner.RolloutsAccepted; accepted < 2*4 {
		t.Errorf("%d rollouts were accepted", accepted)
	}
	status := volunteer.Status().Rollout
	if status.Agent.Lightning != variables["OTEL_EXPORTER_OTLP_ENDPOINT"][len("http://"):] || status.Agent.Command != "" || status.Agent.Started < 2*4+2*4 {
		t.Errorf("the volunteer's agent is %+v", status.Agent)
	}
	key, err := volunteer.folder.LightningKey()
	if err != nil || !strings.Contains(variables["AGL_SERVER_HOST"], key) {
		t.Errorf("the key is %q, %v", key, err)
	}
}
