package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clocked is the list of the packages that decide by time. They must not read the system clock.
// Their code gets the current time from a function.
var clocked = []string{
	"ingest", "drain", "annotation", "classify", "requeue", "operation", "schemas", "notify", "rules", "query",
	"payload", "failure", "deadletter",
}

// readsClock lists the functions that may read the system clock, although their packages are in the
// list "clocked". Each value says why the function may do so.
var readsClock = map[string]string{
	"requeue/clock.go jumpedBy":    "compares the clock that is given with the one that nobody can set",
	"notify/digester.go Size":      "measures how long a question took",
	"query/parse.go Parse":         "the default of Options.Now, which is a time",
	"query/values.go literalValue": "a relative time keeps its text, which Parse reads with the right clock",
}

// TestTheClockIsGiven checks that the packages that decide by time never read the system clock. It
// also checks that the broker code never rounds a time from the clock or converts it to a number.
// Rounding or converting would drop the monotonic part of the time.Time. If the clock was then set
// back, dlo would wait until the clock shows that time again.
func TestTheClockIsGiven(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		room := filepath.Dir(path)
		decides := slices.Contains(clocked, room)
		if strings.HasSuffix(path, "_test.go") || !decides && room != "rabbitmq" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := path + " " + function.Name.Name
			ast.Inspect(function, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if decides && asksClock(call) {
					if used[name] = true; readsClock[name] == "" {
						t.Errorf("%s: the clock of this room is given to it", set.Position(call.Pos()))
					}
				}
				if room == "rabbitmq" && losesSteady(call) {
					t.Errorf("%s: a clock that is set would be waited for", set.Position(call.Pos()))
				}
				return true
			})
		}
	}
	for name := range readsClock {
		if !used[name] {
			t.Errorf("%s does not ask the clock any more", name)
		}
	}
}

// asksClock reports whether a call expression calls time.Now, time.Since or time.Until.
func asksClock(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := f.X.(*ast.Ident)
	return ok && of.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, f.Sel.Name)
}

// losesSteady reports whether a call such as time.Now().Unix() drops the monotonic clock reading
// that time.Now returns.
func losesSteady(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Unix", "UnixMilli", "UnixNano", "Round", "Truncate"}, f.Sel.Name) {
		return false
	}
	found := false
	ast.Inspect(f.X, func(n ast.Node) bool {
		inner, ok := n.(*ast.CallExpr)
		found = found || ok && asksClock(inner)
		return !found
	})
	return found
}
