package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// startLiteLLM starts LiteLLM's proxy before an engine, and waits until it answers.
func startLiteLLM(ctx context.Context, program, engine string) (base string, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "gateway-overhead-")
	if err != nil {
		return "", nil, err
	}
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("model_list:\n- model_name: policy\n  litellm_params:\n    model: openai/policy\n    api_base: %s/v1\n    api_key: sk-none\n", engine)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	port, err := freePort()
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	defer said.Close()
	cmd := exec.Command(program, "--config", config, "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--telemetry", "False")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, said, said
	cmd.Env = append(os.Environ(), "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_LOG=ERROR", "PYTHONUNBUFFERED=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = func() error {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if it has ended
		err := <-ended
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = nil // it was killed
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	base = fmt.Sprintf("http://127.0.0.1:%d", port)
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case err := <-ended:
			text, _ := os.ReadFile(said.Name()) // what it said is for the reader
			ended <- err
			return "", nil, errors.Join(fmt.Errorf("LiteLLM ended: %w:\n%s", err, text), stop())
		case <-ctx.Done():
			text, _ := os.ReadFile(said.Name()) // as above
			return "", nil, errors.Join(fmt.Errorf("LiteLLM does not answer: %w:\n%s", context.Cause(ctx), text), stop())
		case <-again.C:
		}
		if r, err := http.Get(base + "/health/liveliness"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return base, stop, nil
			}
		}
	}
}

// freePort is a port that nothing listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
