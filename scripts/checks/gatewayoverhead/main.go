// Command gatewayoverhead measures how much longer calls through the gateway take than the engine behind it, beside a bare
// reverse proxy and LiteLLM's proxy. scripts/checks/gateway-overhead prepares and runs it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/lightswarm/lightswarm/rollout/gateway"
)

// What has to hold.
const (
	// streams are open at once; beyond the engine's own time they take at most so long.
	streams           = 64
	p50Below          = time.Millisecond
	p99Below          = 5 * time.Millisecond
	agents, agentCall = 500, 4
)

// patience bounds everything.
const patience = 5 * time.Minute

func main() {
	quick := flag.Bool("quick", false, "make few calls, and judge no times")
	litellm := flag.String("litellm", "", "LiteLLM's program; empty leaves it out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %s", patience))
	err := run(ctx, *quick, *litellm)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway-overhead:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, quick bool, litellm string) (err error) {
	calls := 60
	if quick {
		calls = 3
	}
	var table bytes.Buffer
	fmt.Fprintf(&table, "%-22s  clients  calls  calls/s   p50 ms   p99 ms\n", "over the engine's time")
	measure := func(name string, endpoints []endpoint, calls int) (figures, error) {
		f, err := load(ctx, endpoints, calls)
		if err != nil {
			return f, fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(&table, "%-22s  %7d  %5d  %7.0f  %7.2f  %7.2f\n", name, len(endpoints), f.calls, f.perSecond, ms(f.p50), ms(f.p99))
		return f, nil
	}

	engine := httptest.NewServer(http.HandlerFunc(serveEngine))
	defer engine.Close()
	same := func(base string) []endpoint { return slices.Repeat([]endpoint{{base + "/v1", "sk-none"}}, streams) }
	if _, err := measure("engine, by HTTP", same(engine.URL), calls); err != nil {
		return err
	}
	through, err := url.Parse(engine.URL)
	if err != nil {
		return err
	}
	forward := httputil.NewSingleHostReverseProxy(through)
	forward.FlushInterval = -1
	forward.Transport = &http.Transport{MaxIdleConnsPerHost: streams}
	bare := httptest.NewServer(forward)
	defer bare.Close()
	if _, err := measure("reverse proxy", same(bare.URL), calls); err != nil {
		return err
	}
	if litellm != "" {
		base, stop, err := startLiteLLM(ctx, litellm, engine.URL)
		if err != nil {
			return err
		}
		_, err = measure("LiteLLM", same(base), min(calls, 10)) // it takes long
		if err = errors.Join(err, stop()); err != nil {
			return err
		}
	}
	g, err := gateway.Serve(gateway.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close(context.WithoutCancel(ctx))) }()
	sessions := func(n int) (all []endpoint, end func(), err error) {
		var opened []*gateway.Session
		end = func() {
			for _, s := range opened {
				s.End()
			}
		}
		for range n {
			s, err := g.Open(ctx, gateway.SessionOptions{LLM: llm{}, Agents: []string{"solver"}})
			if err != nil {
				end()
				return nil, nil, err
			}
			opened, all = append(opened, s), append(all, endpoint{s.BaseURL(), s.Key()})
		}
		return all, end, nil
	}
	var judged figures
	for _, n := range []struct {
		clients, calls int
	}{{agents, agentCall}, {streams, calls}} {
		all, end, err := sessions(n.clients)
		if err != nil {
			return err
		}
		judged, err = measure("gateway", all, n.calls)
		end()
		if err != nil {
			return err
		}
	}
	fmt.Print(table.String())
	if !quick && (judged.p50 >= p50Below || judged.p99 >= p99Below) {
		return fmt.Errorf("with %d streams the gateway takes %.2f ms and, at the 99th percentile, %.2f ms; it must be below %s and %s",
			streams, ms(judged.p50), ms(judged.p99), p50Below, p99Below)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
