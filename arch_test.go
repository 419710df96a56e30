package lightswarm_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/lightswarm/lightswarm"

// layers is the architecture: for each package, or each tree of packages ending in "/...", the packages of this module
// that it may import. The most specific line counts. A tree's packages may always import one another. What only tests
// may import stands behind the bar.
var layers = map[string]string{
	"durable":                       "",
	"strictoml":                     "",
	"virtualtime":                   "",
	"wire":                          "wire/wirepb",
	"wire/wirepb":                   "",
	"wire/bundle":                   "wire wire/wirepb",
	"wire/draw":                     "wire",
	"policy":                        "durable wire policy/chat policy/grammar policy/safetensors policy/tokenizer",
	"policy/kernel/...":             "",
	"policy/safetensors":            "",
	"policy/tokenizer":              "",
	"policy/chat":                   "policy/tokenizer",
	"policy/grammar":                "policy/tokenizer | policy/chat",
	"policy/transformer":            "policy/kernel policy/safetensors",
	"policy/base":                   "policy | wire policy/chat policy/safetensors policy/tokenizer policy/transformer",
	"policy/embedded":               "wire wire/draw policy policy/chat policy/grammar policy/kernel policy/safetensors policy/tokenizer policy/transformer | policy/base",
	"policy/pretrain":               "policy policy/chat policy/safetensors policy/tokenizer policy/transformer | wire policy/embedded",
	"rollout":                       "durable wire wire/bundle wire/draw policy policy/chat rollout/agent rollout/env | rollout/env/calc policy/embedded policy/base policy/grammar policy/tokenizer policy/safetensors policy/transformer virtualtime",
	"rollout/agent":                 "policy policy/chat policy/grammar rollout/env",
	"rollout/gateway/...":           "policy/chat rollout/agent rollout/telemetry policy/grammar | wire wire/bundle policy policy/base policy/embedded policy/tokenizer rollout rollout/env rollout/env/calc",
	"rollout/lightning/...":         "policy/chat rollout/agent rollout/env rollout/gateway rollout/telemetry | wire wire/bundle policy/base policy/embedded rollout rollout/env/calc rollout/process",
	"rollout/telemetry":             "",
	"rollout/process":               "policy/chat rollout/agent rollout/env rollout/gateway | wire rollout/process/module",
	"rollout/process/module":        "",
	"rollout/env":                   "wire policy/chat | rollout/env/calc",
	"rollout/warmstart":             "wire wire/bundle policy policy/... rollout rollout/...",
	"rollout/env/calc":              "wire policy/chat rollout/agent rollout/env | rollout/env/drivertest",
	"rollout/env/drivertest":        "wire wire/bundle policy policy/chat rollout rollout/agent rollout/env",
	"rollout/env/openenv":           "wire policy/chat rollout/env rollout/env/protocol | rollout/agent rollout/env/drivertest rollout/env/pack wire/bundle",
	"rollout/env/pack":              "strictoml wire rollout/env rollout/env/openenv rollout/env/program rollout/env/wasm rollout/env/wasm/meter",
	"rollout/env/program":           "wire rollout/env rollout/env/protocol | rollout/env/drivertest rollout/env/pack policy",
	"rollout/env/protocol":          "wire policy/chat rollout/env",
	"rollout/env/wasm":              "wire rollout/env rollout/env/protocol rollout/env/wasm/meter | rollout/env/drivertest rollout/env/pack rollout/env/wasm/wasmtest",
	"rollout/env/wasm/meter":        "",
	"rollout/env/wasm/wasmtest/...": "wire rollout/env rollout/env/wasm",
	"learner":                       "durable wire wire/bundle wire/draw policy policy/grammar policy/safetensors policy/transformer learner/... | policy/base policy/chat policy/tokenizer policy/embedded virtualtime",
	"learner/credit":                "learner/named",
	"learner/advantage":             "learner/named",
	"learner/loss":                  "policy/kernel learner/named",
	"learner/named":                 "",
	"learner/row":                   "wire/bundle",
	"learner/learnerpb":             "",
	"learner/watch":                 "wire learner | learner/journal",
	"learner/tensorboard":           "",
	"learner/journal":               "durable wire learner learner/watch learner/tensorboard",
	"learner/storetest":             "wire learner",
	"p2p/...":                       "wire wire/wirepb | virtualtime",
	"p2p/simnet":                    "virtualtime",
	"node":                          "wire wire/bundle wire/draw policy policy/base policy/chat policy/embedded policy/transformer rollout rollout/... learner learner/... p2p p2p/... node/... | policy/safetensors policy/tokenizer virtualtime",
	"node/config":                   "durable wire learner/advantage learner/credit learner/loss learner/named learner/row",
	"node/store":                    "wire rollout learner p2p/block p2p/discovery p2p/head p2p/packages | learner/storetest virtualtime",
	"node/api":                      "",
	"testnet":                       "wire wire/bundle wire/draw policy policy/... rollout rollout/... learner learner/... p2p p2p/... node node/... testnet/...",
	"testnet/report":                "durable",
	"experiment":                    "durable strictoml learner/named testnet/report",
	"cmd/...":                       "durable experiment wire wire/... policy policy/... rollout rollout/... learner learner/... p2p p2p/... node node/... testnet testnet/...",
	"examples/...":                  "",
	"scripts/...":                   "experiment wire wire/... policy policy/... rollout rollout/... learner learner/... p2p p2p/... node node/... testnet testnet/... scripts/checks/chains scripts/checks/peers scripts/checks/pinned | virtualtime",
}

// modules lists the outside modules that only some packages may import, so that each stays behind one seam.
var modules = map[string]string{
	"github.com/libp2p/":           "p2p/... node node/store testnet cmd/...",
	"github.com/multiformats/":     "p2p/... node/... testnet cmd/...",
	"github.com/marcopolo/simnet":  "p2p/... testnet",
	"github.com/cockroachdb/":      "node/store",
	"github.com/prometheus/":       "p2p node node/api",
	"github.com/spf13/":            "node/config cmd/...",
	"github.com/pelletier/go-toml": "node/config strictoml",
	"github.com/tetratelabs/":      "rollout/env/wasm/... rollout/process/module",
	"github.com/coder/websocket":   "rollout/env/openenv",
	"github.com/parquet-go/":       "cmd/... scripts/...",
	"charm.land/":                  "cmd/...",
	"gonum.org/":                   "experiment",
	"google.golang.org/protobuf/":  "wire/... wire p2p/... learner learner/learnerpb learner/tensorboard rollout/telemetry",
	"go.opentelemetry.io/":         "rollout/telemetry",
	"github.com/ipfs/go-cid":       "p2p/...",
	"net/http":                     "node/api rollout/env/openenv rollout/gateway/... rollout/lightning testnet cmd/... examples/... scripts/...",
	"math/rand":                    "",
}

// Every import in the module, on every platform, is one that the tables allow.
func TestImportsPointOneWay(t *testing.T) {
	used := map[string]bool{}
	for pkg, files := range packages(t) {
		rule, ok := specific(layers, pkg)
		if !ok {
			t.Errorf("package %s is in no layer: add it to the table, and say in docs/architecture.md what it is for", pkg)
			continue
		}
		used[rule] = true
		allowed, testsOnly, _ := strings.Cut(layers[rule], "|")
		for _, f := range files {
			for _, imported := range f.imports {
				inside, ours := strings.CutPrefix(imported, module+"/")
				may := inside == pkg || matches(rule, inside) || matches(allowed, inside) || f.test && matches(testsOnly, inside)
				switch {
				case ours && !may:
					t.Errorf("%s: package %s may not import %s", f.name, pkg, inside)
				case !ours && !f.test:
					checkModule(t, pkg, f.name, imported)
				}
			}
		}
	}
	for rule := range layers {
		if !used[rule] {
			t.Errorf("the table names %s, which does not exist", rule)
		}
	}
}

func checkModule(t *testing.T, pkg, file, imported string) {
	t.Helper()
	for prefix, allowed := range modules {
		if imported == prefix || strings.HasPrefix(imported, strings.TrimSuffix(prefix, "/")+"/") && prefix != "math/rand" {
			if !matches(allowed, pkg) {
				t.Errorf("%s: package %s may not import %s; that belongs in: %s", file, pkg, imported, allowed)
			}
		}
	}
}

// specific returns the longest pattern of the table that matches pkg.
func specific(table map[string]string, pkg string) (rule string, ok bool) {
	for pattern := range table {
		if matches(pattern, pkg) && (!ok || len(pattern) > len(rule)) {
			rule, ok = pattern, true
		}
	}
	return rule, ok
}

// matches says whether one of the patterns is pkg, or is a tree that holds it.
func matches(patterns, pkg string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(pattern string) bool {
		tree, isTree := strings.CutSuffix(pattern, "/...")
		return pattern == pkg || isTree && (pkg == tree || strings.HasPrefix(pkg, tree+"/"))
	})
}

// file is a Go file's imports.
type file struct {
	name    string
	test    bool
	imports []string
}

// packages reads the imports of every Go file, whatever platform it is for.
func packages(t *testing.T) map[string][]file {
	t.Helper()
	found := map[string][]file{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != "." && (base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
			return filepath.SkipDir
		}
		pkg := path.Dir(filepath.ToSlash(name))
		if entry.IsDir() || filepath.Ext(name) != ".go" || pkg == "." {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		f := file{name: name, test: strings.HasSuffix(name, "_test.go")}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported)
		}
		found[pkg] = append(found[pkg], f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
