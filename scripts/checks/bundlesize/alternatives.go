package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/lightswarm/lightswarm/wire/bundle"
)

// group is a bundle as a plain JSON document: no nesting beyond need, nothing repeated that a bundle does not repeat.
type group struct {
	Network             string    `json:"network"`
	Purpose             string    `json:"purpose"`
	Environment         string    `json:"environment"`
	Split               string    `json:"split"`
	PolicyVersion       uint64    `json:"policy_version"`
	PolicyDigest        string    `json:"policy_digest"`
	Peer                string    `json:"peer,omitempty"`
	Counter             uint64    `json:"counter"`
	Temperature         float32   `json:"temperature"`
	TopK                uint32    `json:"top_k"`
	TopP                float32   `json:"top_p"`
	MaxCompletionTokens uint32    `json:"max_completion_tokens"`
	Engine              uint8     `json:"engine"`
	Rollouts            []rollout `json:"rollouts"`
}

type rollout struct {
	Member     uint32             `json:"member"`
	Task       uint64             `json:"task"`
	Outcome    string             `json:"outcome"`
	Reward     float32            `json:"reward"`
	Components map[string]float32 `json:"components,omitempty"`
	Calls      []call             `json:"calls"`
}

type call struct {
	Agent      string    `json:"agent"`
	Prompt     []int32   `json:"prompt"`
	Completion []int32   `json:"completion"`
	LogProbs   []float32 `json:"log_probs"`
	Finish     uint8     `json:"finish"`
	Reward     *float32  `json:"reward,omitempty"`
	Grammar    []byte    `json:"grammar,omitempty"`
}

func groupOf(b *bundle.Bundle) group {
	g := group{
		Network:             b.Network.String(),
		Purpose:             b.Purpose.String(),
		Environment:         b.Environment.String(),
		Split:               b.Split,
		PolicyVersion:       b.PolicyVersion,
		PolicyDigest:        fmt.Sprintf("%x", b.PolicyDigest),
		Peer:                b.Peer.String(),
		Counter:             b.Counter,
		Temperature:         b.Sampling.Temperature,
		TopK:                b.Sampling.TopK,
		TopP:                b.Sampling.TopP,
		MaxCompletionTokens: b.MaxCompletionTokens,
		Engine:              uint8(b.Engine),
	}
	for _, r := range b.Rollouts {
		out := rollout{Member: r.Member, Task: r.Task, Outcome: r.Outcome.String(), Reward: r.Reward}
		for _, c := range r.Components {
			if out.Components == nil {
				out.Components = make(map[string]float32)
			}
			out.Components[c.Name] = c.Value
		}
		for _, c := range r.Calls {
			out.Calls = append(out.Calls, call{c.Agent, c.Prompt, c.Completion, c.LogProbs, c.Finish, c.Reward, []byte(c.Grammar)})
		}
		g.Rollouts = append(g.Rollouts, out)
	}
	return g
}

func encodeJSON(b *bundle.Bundle) ([]byte, error) { return json.Marshal(groupOf(b)) }

// compress is zstd at its strongest level, without a checksum, as bundles have none.
func compress(b []byte) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err)
	}
	defer e.Close()
	return e.EncodeAll(b, nil)
}

// row is one call in Parquet: integers delta-packed or in dictionaries, binary ids, floats in their own width.
type row struct {
	Network             []byte      `parquet:"network,dict"`
	Purpose             int32       `parquet:"purpose,dict"`
	Environment         []byte      `parquet:"environment,dict"`
	Split               string      `parquet:"split,dict"`
	PolicyVersion       uint64      `parquet:"policy_version,dict"`
	PolicyDigest        []byte      `parquet:"policy_digest,dict"`
	Peer                []byte      `parquet:"peer,dict"`
	Counter             uint64      `parquet:"counter,dict"`
	Temperature         float32     `parquet:"temperature,dict"`
	TopK                uint32      `parquet:"top_k,dict"`
	TopP                float32     `parquet:"top_p,dict"`
	MaxCompletionTokens uint32      `parquet:"max_completion_tokens,dict"`
	Engine              int32       `parquet:"engine,dict"`
	Member              uint32      `parquet:"member,dict"`
	Task                uint64      `parquet:"task,dict"`
	Outcome             int32       `parquet:"outcome,dict"`
	Reward              float32     `parquet:"reward,dict"`
	Components          []component `parquet:"components,list"`
	Agent               string      `parquet:"agent,dict"`
	Prompt              []int32     `parquet:"prompt"`
	Completion          []int32     `parquet:"completion"`
	LogProbs            []float32   `parquet:"log_probs"`
	Finish              int32       `parquet:"finish,dict"`
	CallReward          *float32    `parquet:"call_reward,optional"`
}

type component struct {
	Name  string  `parquet:"name,dict"`
	Value float32 `parquet:"value,dict"`
}

func encodeParquet(groups []*bundle.Bundle) ([]byte, error) {
	var rows []row
	for _, b := range groups {
		for _, r := range b.Rollouts {
			var components []component
			for _, c := range r.Components {
				components = append(components, component(c))
			}
			for _, c := range r.Calls {
				rows = append(rows, row{
					Network: b.Network.Bytes(), Purpose: int32(b.Purpose), Environment: b.Environment.Bytes(), Split: b.Split,
					PolicyVersion: b.PolicyVersion, PolicyDigest: b.PolicyDigest[:], Peer: []byte(b.Peer), Counter: b.Counter,
					Temperature: b.Sampling.Temperature, TopK: b.Sampling.TopK, TopP: b.Sampling.TopP,
					MaxCompletionTokens: b.MaxCompletionTokens, Engine: int32(b.Engine),
					Member: r.Member, Task: r.Task, Outcome: int32(r.Outcome), Reward: r.Reward, Components: components,
					Agent: c.Agent, Prompt: c.Prompt, Completion: c.Completion, LogProbs: c.LogProbs,
					Finish: int32(c.Finish), CallReward: c.Reward,
				})
			}
		}
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out, parquet.Compression(&parquet.Zstd), parquet.DataPageStatistics(false))
	if _, err := w.Write(rows); err != nil {
		return nil, fmt.Errorf("write Parquet: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write Parquet: %w", err)
	}
	return out.Bytes(), nil
}
