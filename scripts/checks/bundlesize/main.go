// Command bundlesize measures recorded bundles against JSON, compressed JSON and compressed Parquet, and fails when
// a bundle is not as much smaller as the project promises.
//
//	go run ./scripts/checks/bundlesize FILE...
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/lightswarm/lightswarm/wire/bundle"
)

// promises are the most that bundles may take of each alternative's bytes. Parquet in one file for all groups is the
// harder comparison: it pays for its footer once and compresses across groups, which a bundle that travels alone
// cannot.
var promises = []struct {
	name  string
	limit float64
	bytes func(s sizes) int
}{
	{"JSON", 1.0 / 10, func(s sizes) int { return s.json }},
	{"zstd JSON", 1.0 / 2, func(s sizes) int { return s.zstdJSON }},
	{"zstd Parquet, one file a group", 2.0 / 3, func(s sizes) int { return s.parquetEach }},
	{"zstd Parquet, one file for all", 2.0 / 3, func(s sizes) int { return s.parquetAll }},
}

// sizes are total bytes over all groups.
type sizes struct{ bundle, json, zstdJSON, parquetEach, parquetAll int }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bundlesize:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("no recorded bundles to measure: run a network and copy some of its bundles into wire/bundle/testdata/recorded")
	}
	var groups []*bundle.Bundle
	rollouts, tokens := 0, 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		b, err := bundle.Decode(data, bundle.Limits{})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		groups = append(groups, b)
		rollouts += len(b.Rollouts)
		for _, r := range b.Rollouts {
			for _, c := range r.Calls {
				tokens += len(c.Prompt) + len(c.Completion)
			}
		}
	}
	s, err := measure(groups)
	if err != nil {
		return err
	}
	encode, decode, err := speed(groups)
	if err != nil {
		return err
	}

	per := func(n int) float64 { return float64(n) / float64(rollouts) }
	fmt.Printf("%d recorded groups, %d rollouts, %.0f tokens a rollout\n", len(groups), rollouts, per(tokens))
	fmt.Printf("speed: encode %.0f MB/s, decode %.0f MB/s (of JSON bytes, one core)\n",
		float64(s.json)/encode.Seconds()/1e6, float64(s.json)/decode.Seconds()/1e6)
	fmt.Printf("%-32s %14s %12s %10s\n", "", "bytes/rollout", "bundle is", "promised")
	fmt.Printf("%-32s %14.1f\n", "bundle", per(s.bundle))
	broken := 0
	for _, p := range promises {
		ratio := float64(s.bundle) / float64(p.bytes(s))
		verdict := "ok"
		if ratio > p.limit {
			verdict = "BROKEN"
			broken++
		}
		fmt.Printf("%-32s %14.1f %12.3f %10.3f %s\n", p.name, per(p.bytes(s)), ratio, p.limit, verdict)
	}
	if broken > 0 {
		return fmt.Errorf("%d of %d promises are broken", broken, len(promises))
	}
	return nil
}

func measure(groups []*bundle.Bundle) (s sizes, err error) {
	for _, b := range groups {
		data, err := bundle.Encode(b)
		if err != nil {
			return s, err
		}
		text, err := encodeJSON(b)
		if err != nil {
			return s, err
		}
		table, err := encodeParquet([]*bundle.Bundle{b})
		if err != nil {
			return s, err
		}
		s.bundle += len(data)
		s.json += len(text)
		s.zstdJSON += len(compress(text))
		s.parquetEach += len(table)
	}
	all, err := encodeParquet(groups)
	s.parquetAll = len(all)
	return s, err
}

// speed returns how long it takes to encode and to decode all groups once, the best of several rounds.
func speed(groups []*bundle.Bundle) (encode, decode time.Duration, err error) {
	encode, decode = time.Hour, time.Hour
	encoded := make([][]byte, len(groups))
	for range 10 {
		start := time.Now()
		for i, b := range groups {
			if encoded[i], err = bundle.Encode(b); err != nil {
				return 0, 0, err
			}
		}
		encode = min(encode, time.Since(start))
		start = time.Now()
		for _, data := range encoded {
			if _, err := bundle.Decode(data, bundle.Limits{}); err != nil {
				return 0, 0, err
			}
		}
		decode = min(decode, time.Since(start))
	}
	return encode, decode, nil
}
