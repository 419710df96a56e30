package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// Every reason that a learner has is explained, and none that it has not.
func TestEveryReasonHasAMeaning(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../learner/reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Reason" || spec.Names[0].Name == "Admitted" {
			return true
		}
		reason, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found[reason] = true
		if meanings[reason] == "" {
			t.Errorf("%s has no meaning", reason)
		}
		return true
	})
	if len(found) != len(meanings) {
		t.Errorf("learners have %d reasons, and %d are explained", len(found), len(meanings))
	}
}
