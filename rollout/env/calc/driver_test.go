package calc

import (
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/drivertest"
	"github.com/lightswarm/lightswarm/wire"
)

func TestDriver(t *testing.T) {
	p, err := env.NewPackage(New().Manifest(), nil)
	if err != nil {
		t.Fatal(err)
	}
	drivers := env.Drivers{env.Builtin(New())}
	e, err := drivers.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	drivertest.Test(t, drivertest.Subject{Environment: e, Oracle: Oracle(), Null: Null(), Tasks: 50, Replies: true})

	for _, c := range []struct {
		says   string
		change func(*wire.EnvironmentManifest)
	}{
		{"another version of lightswarm has that one", func(m *wire.EnvironmentManifest) { m.Description = "another" }},
		{`nothing called "maze"`, func(m *wire.EnvironmentManifest) { m.Entry = "maze" }},
		{`of kind "harbor", and this program runs builtin`, func(m *wire.EnvironmentManifest) { m.Kind = "harbor" }},
	} {
		m := New().Manifest()
		c.change(&m)
		p, err := env.NewPackage(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := drivers.Open(t.Context(), p); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want …%s…", err, c.says)
		}
	}
}
