package main

import (
	"runtime/debug"
	"testing"
)

func TestBuildSaysItsSource(t *testing.T) {
	settings := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.time", Value: "2026-01-31T12:00:00Z"}, {Key: "vcs.modified", Value: "true"},
	}
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want build
	}{
		"release":  {debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}}, build{Version: "v0.1.0"}},
		"unknown":  {debug.BuildInfo{}, build{Version: "devel"}},
		"no stamp": {debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, build{Version: "devel"}},
		"changed": {debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: settings},
			build{Version: "devel", Revision: "0123456789abcdef0123", Time: "2026-01-31T12:00:00Z", Modified: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := buildOf(&c.info); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	b := build{Revision: "0123456789abcdef0123", Time: "2026-01-31T12:00:00Z", Modified: true}
	if got, want := b.revision(), "0123456789ab of 2026-01-31T12:00:00Z, with changes that are not committed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
