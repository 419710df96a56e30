// A calculator agent from scratch, in Go without a library: Chat Completions by HTTP. It is built for this machine, or as a
// WebAssembly module:
//
//	GOOS=wasip1 GOARCH=wasm go build -o from_scratch.wasm .
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

type message struct {
	Role      string  `json:"role"`
	Content   *string `json:"content"`
	ToolCalls []call  `json:"tool_calls,omitempty"`
	CallID    string  `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

var tools = json.RawMessage(`[{
	"type": "function",
	"function": {
		"name": "calculator",
		"description": "Integer arithmetic.",
		"parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
	}
}]`)

func complete(client *http.Client, messages []message) (message, error) {
	body, err := json.Marshal(map[string]any{"model": "gpt-4o-mini", "messages": messages, "tools": tools})
	if err != nil {
		return message{}, err
	}
	request, err := http.NewRequest(http.MethodPost, os.Getenv("OPENAI_BASE_URL")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return message{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	response, err := client.Do(request)
	if err != nil {
		return message{}, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return message{}, err
	}
	if response.StatusCode != http.StatusOK {
		return message{}, fmt.Errorf("%s: %s", response.Status, answer)
	}
	var completion struct {
		Choices []struct {
			Message message `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(answer, &completion); err != nil {
		return message{}, err
	}
	if len(completion.Choices) == 0 {
		return message{}, errors.New("the answer has no choice")
	}
	return completion.Choices[0].Message, nil
}

func use(c call) string {
	var arguments struct {
		Expression *string `json:"expression"`
	}
	if json.Unmarshal([]byte(c.Function.Arguments), &arguments) != nil || arguments.Expression == nil {
		return `error: arguments must be {"expression":"..."}`
	}
	return calculate(*arguments.Expression)
}

func solve(task string) (string, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	system := "Use the calculator. Answer with the number."
	messages := []message{{Role: "system", Content: &system}, {Role: "user", Content: &task}}
	for {
		answer, err := complete(client, messages)
		if err != nil {
			return "", err
		}
		messages = append(messages, answer)
		if len(answer.ToolCalls) == 0 {
			if answer.Content == nil {
				return "", nil
			}
			return *answer.Content, nil
		}
		for _, c := range answer.ToolCalls {
			result := use(c)
			messages = append(messages, message{Role: "tool", Content: &result, CallID: c.ID})
		}
	}
}

func main() {
	task, err := io.ReadAll(os.Stdin)
	if err == nil {
		var answer string
		if answer, err = solve(strings.TrimSpace(string(task))); err == nil {
			fmt.Fprintln(os.Stdout, answer)
			return
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
