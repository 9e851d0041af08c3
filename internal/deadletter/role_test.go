package deadletter

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestEveryVerbHasARole finds all constants of the type Verb in the source. It checks that some
// role includes each of them. If no role includes a verb, nobody may perform its action.
func TestEveryVerbHasARole(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.Ident); !ok || of.Name != "Verb" {
				return true
			}
			for _, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok {
					found++
					verb, _ := strconv.Unquote(literal.Value)
					if !Local.May(Verb(verb)) {
						t.Errorf("no role includes %q", verb)
					}
				}
			}
			return true
		})
	}
	if found != len(verbs) {
		t.Errorf("%d verbs in the source, %d with a role", found, len(verbs))
	}
}

// TestRolesIncludeTheRolesBefore checks some actions that each role permits, and some that it does
// not permit. A higher role must also permit the actions of the roles below it.
func TestRolesIncludeTheRolesBefore(t *testing.T) {
	for _, c := range []struct {
		grants []Grant
		may    []Verb
		not    []Verb
	}{
		{nil, nil, []Verb{VerbView}},
		{[]Grant{{}}, nil, []Verb{VerbView}},
		{[]Grant{{Role: 99, Reveal: true}}, nil, []Verb{VerbView, VerbReveal}},
		{[]Grant{{Role: -1}}, nil, []Verb{VerbView}},
		{[]Grant{{Role: RoleReader}}, []Verb{VerbView}, []Verb{VerbReveal, VerbRequeue, VerbTriage, VerbViews}},
		{[]Grant{{Role: RoleReader, Reveal: true, Purge: true}}, []Verb{VerbView, VerbReveal}, []Verb{VerbPurge}},
		{
			[]Grant{{Role: RoleOperator}},
			[]Verb{VerbView, VerbRequeue, VerbTriage},
			[]Verb{VerbEdit, VerbPurge, VerbReveal},
		},
		{[]Grant{{Role: RoleOperator, Purge: true}}, []Verb{VerbPurge}, []Verb{VerbReveal}},
		{
			[]Grant{{Role: RoleEditor}},
			[]Verb{VerbRequeue, VerbEdit, VerbTypes},
			[]Verb{VerbAccess, VerbAdopt, VerbStore, VerbBackup},
		},
		{[]Grant{{Role: RoleAdmin}}, []Verb{VerbAccess, VerbEdit}, []Verb{VerbReveal, VerbPurge, "unknown"}},
		{
			[]Grant{{Role: RoleReader}, {Role: RoleOperator, Places: Places{Queues: []string{"pay.*", "q"}}}},
			[]Verb{VerbView, VerbRequeue},
			[]Verb{VerbRequeue, VerbTriage},
		},
		{[]Grant{{Role: RoleOperator, Places: Places{Queues: []string{"pay.*"}}}}, nil, []Verb{VerbRequeue}},
		{
			[]Grant{{Role: RoleOperator, Places: Places{Brokers: []string{"eu-*"}, VHosts: []string{"*"}}}},
			nil,
			[]Verb{VerbView},
		},
		{[]Grant{{Role: RoleOperator, Places: Places{Queues: []string{"*"}}}}, []Verb{VerbRequeue}, []Verb{VerbEdit}},
		{
			[]Grant{{Role: RoleReader, Reveal: true}, {Role: RoleAdmin}},
			[]Verb{VerbReveal, VerbAdopt},
			[]Verb{VerbPurge},
		},
	} {
		p := Principal{Name: "ana", Grants: c.grants}
		for _, v := range c.may {
			if err := Allow(p, v, Origin{Queue: "q"}); err != nil {
				t.Errorf("%v: %v", c.grants, err)
			}
		}
		for _, v := range c.not {
			if err := Allow(p, v, Origin{}); !errors.Is(err, ErrForbidden) {
				t.Errorf("%v may %s: %v", c.grants, v, err)
			}
		}
	}
}

// TestReadOnly checks that nobody may change anything if dlo is read-only.
func TestReadOnly(t *testing.T) {
	p := Local
	p.Fixed = "read_only is set"
	for v := range verbs {
		want := v == VerbView || v == VerbRead || v == VerbReveal || v == VerbBackup
		for name, err := range map[string]error{"allow": Allow(p, v, Origin{Broker: "main"}), "reach": Reach(p, v)} {
			if (err == nil) != want || err != nil &&
				(!errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "because read_only is set")) {
				t.Errorf("%s %s: %v", name, v, err)
			}
		}
		if p.May(v) != want || p.MayEverywhere(v) != want || p.MayToAll(v) != want {
			t.Errorf("%s: %t %t %t", v, p.May(v), p.MayEverywhere(v), p.MayToAll(v))
		}
	}
	if (Principal{Fixed: "read_only is set"}).May(VerbView) {
		t.Error("it gives rights")
	}
}

// TestRolesHaveNames checks that roles are encoded to JSON as their names and decoded again.
func TestRolesHaveNames(t *testing.T) {
	for _, name := range RoleNames() {
		r, err := ParseRole(name)
		text, _ := json.Marshal(r)
		var back Role
		if err != nil || r.String() != name || json.Unmarshal(text, &back) != nil || back != r {
			t.Errorf("%s: %v %v %s %v", name, r, err, text, back)
		}
	}
	for _, wrong := range []string{"", "none", "root", "Admin"} {
		if _, err := ParseRole(wrong); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
