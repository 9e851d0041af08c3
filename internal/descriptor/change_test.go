package descriptor

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// compileOne returns the schema of one .proto file.
func compileOne(t testing.TB, source string) *Schema {
	t.Helper()
	s, err := ReadUpload(t.Context(), "m.proto", []byte("syntax = \"proto3\";\n"+source))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCompare(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	one := compileOne(
		t,
		`package p; message M { string a = 1; int32 b = 2; K k = 3; oneof o { string x = 4; string y = 5; } } message Gone {} enum K { NONE = 0; OLD = 1; }`,
	)
	two := compileOne(t, `package p;
		message M { string a = 1; string b = 2; repeated K k = 3; oneof o { string x = 4; } string z = 5; map<string, N> notes = 7; optional bool secret = 8 [debug_redact = true]; }
		message N {} enum K { NONE = 0; NEW = 1; ODD = 2; }`)
	got := r.Compare("s", one)
	if got.Known != "" || !cmp.Equal(got.Added, []string{"p.Gone", "p.K", "p.M"}) || got.Changed != nil ||
		got.Removed != nil {
		t.Errorf("first: %+v", got)
	}
	r.Add(deadletter.SchemaVersion{Name: "s"}, one)
	got = r.Compare("s", two)
	want := Change{
		Set: "s", Version: two.Version(), Added: []string{"p.N"}, Removed: []string{"p.Gone"},
		Changed: []TypeChange{
			{Type: "p.K", Differences: []string{"value 1 renamed OLD -> NEW", "value 2 added: ODD"}},
			{Type: "p.M", Differences: []string{
				"field 2 b type int32 -> string", "field 3 k type p.K -> repeated p.K", "field 5 renamed y -> z",
				"field 5 z in oneof o -> none", "field 7 added: map<string, p.N> notes",
				"field 8 added: optional bool secret",
			}},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Change{}, "Affected")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := strings.Join(got.Affected, " "); got != "p.Gone p.K p.M p.N" {
		t.Errorf("affected %s", got)
	}
	r.Add(deadletter.SchemaVersion{Name: "s"}, two)
	if a, b := r.Compare("s", two).Known, r.Compare("s", one).Known; a != KnownCurrent || b != KnownOlder {
		t.Errorf("known %q, %q", a, b)
	}
	got = r.Compare("other", one)
	if len(got.Conflicts) != 2 || got.Conflicts[0].Set != "s" || got.Conflicts[0].Type != "p.K" ||
		got.Conflicts[1].Type != "p.M" || len(got.Added) != 3 {
		t.Errorf("conflicts %+v", got.Conflicts)
	}
	if got := r.Compare("other", compileOne(t, `package p; message N {}`)); got.Conflicts != nil {
		t.Errorf("the same definition is a conflict: %+v", got.Conflicts)
	}
	if got := r.Compare(
		"other", compileOne(t, `package p; enum M { ZERO = 0; }`),
	); len(got.Conflicts) != 1 || got.Conflicts[0].Differences[0] != "it was no enum" {
		t.Errorf("%+v", got.Conflicts)
	}
}

func TestTypesThatHoldAChangedTypeAreAffected(t *testing.T) {
	t.Parallel()
	const rest = ` message Order { map<string, Line> lines = 1; } message Line { Item item = 1; } message Box { repeated Order orders = 1; Box inner = 2; } message Alone { string a = 1; }`
	r := NewRegistry()
	r.Add(deadletter.SchemaVersion{Name: "s"}, compileOne(t, `message Item { string a = 1; }`+rest))
	c := r.Compare("s", compileOne(t, `message Item { string a = 1; string b = 2; }`+rest))
	if got := strings.Join(c.Affected, " "); got != "Box Item Line Order" || len(c.Changed) != 1 {
		t.Errorf("affected %s", got)
	}
}

// TestAffectedByContent covers types that have no field of a changed type, but may contain one: an
// Any contains any type, and an extension is declared outside of the type.
func TestAffectedByContent(t *testing.T) {
	t.Parallel()
	const rest = ` message Holder { google.protobuf.Any any = 1; } message Alone { string a = 1; }`
	const imports = `import "google/protobuf/any.proto"; `
	r := NewRegistry()
	r.Add(deadletter.SchemaVersion{Name: "s"}, compileOne(t, imports+rest))
	c := r.Compare("s", compileOne(t, imports+`message New { string a = 1; }`+rest))
	if got := strings.Join(c.Affected, " "); got != "Holder New" {
		t.Errorf("a type that an Any may contain: affected %s", got)
	}
	compile2 := func(source string) *Schema {
		t.Helper()
		s, err := ReadUpload(t.Context(), "m.proto", []byte("syntax = \"proto2\";\n"+source))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const open = `message Open { extensions 100 to 200; } message User { optional Open open = 1; }
		extend Open { optional string remark = 100`
	r.Add(deadletter.SchemaVersion{Name: "x"}, compile2(open+`; }`))
	for _, next := range []string{open + ` [debug_redact = true]; }`, open + `; optional string more = 101; }`} {
		if got := strings.Join(r.Compare("x", compile2(next)).Affected, " "); got != "Open User" {
			t.Errorf("%s: affected %s", next, got)
		}
	}
	if got := r.Compare("x", compile2(open+`; }`)).Affected; got != nil {
		t.Errorf("nothing has changed: affected %s", got)
	}
}

func TestDifferencesAreBounded(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 100 {
		many.WriteString("string f" + strings.Repeat("x", i) + " = " + deadletter.Count(i+1) + ";")
	}
	r := NewRegistry()
	r.Add(deadletter.SchemaVersion{Name: "s"}, compileOne(t, `message M {}`))
	got := r.Compare("s", compileOne(t, `message M {`+many.String()+`}`))
	if len(got.Changed) != 1 || len(got.Changed[0].Differences) != maxDifferences ||
		got.Changed[0].More != 100-maxDifferences {
		t.Errorf("%+v", got.Changed)
	}
}

func TestRemovedSetsAreForgotten(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	r.Add(deadletter.SchemaVersion{Name: "a"}, compileOne(t, `package p; message M { string a = 1; }`))
	r.Add(
		deadletter.SchemaVersion{Name: "a"},
		compileOne(t, `package p; message M { string a = 1; int32 b = 2; } message A {}`),
	)
	r.Add(deadletter.SchemaVersion{Name: "b"}, compileOne(t, `package p; message M { int32 a = 1; } message B {}`))
	if !r.Remove("a") || r.Remove("a") {
		t.Error("it is not removed once")
	}
	if got := strings.Join(r.Types(), " "); got != "p.B p.M" {
		t.Errorf("types %s", got)
	}
	if defs, _ := r.Lookup("M"); len(defs) != 1 || !strings.HasPrefix(defs[0].Set, "b ") {
		t.Errorf("M is %v", defs)
	}
	if defs, _ := r.Lookup("A"); len(defs) != 0 {
		t.Error("A is there still")
	}
	if s, _ := r.Current("a"); s != nil {
		t.Error("the set has a version")
	}
}

func TestTheOldestOfManyVersionsIsForgotten(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	for i := range MaxVersions + 5 {
		r.Add(deadletter.SchemaVersion{Name: "a"}, compileOne(t, `message M`+deadletter.Count(i)+` {}`))
	}
	if sets, types := r.Sets(), r.Types(); len(sets) != MaxVersions || len(types) != MaxVersions || !sets[0].Current ||
		sets[0].Types[0] != "M24" {
		t.Errorf("%d versions, %d types, newest %v", len(sets), len(types), sets[0].Types)
	}
}

func TestWithTriesASchema(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	r.Add(deadletter.SchemaVersion{Name: "a"}, compileOne(t, `message A {}`))
	trial := r.With("b", compileOne(t, `message B {}`))
	if a, b := strings.Join(r.Types(), " "), strings.Join(trial.Types(), " "); a != "A" || b != "A B" {
		t.Errorf("%s, %s", a, b)
	}
	if got := (*Registry)(nil).With("b", compileOne(t, `message B {}`)).Types(); len(got) != 1 {
		t.Error(got)
	}
}

func TestAContentComesBackAsItWas(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	if _, err := r.AddSource("s", fstest.MapFS{
		"a.proto": payloadtest.File(
			"syntax = \"proto3\";\n// What it is.\nmessage A { string b = 1 [debug_redact = true]; }",
		),
	}); err != nil {
		t.Fatal(err)
	}
	s, _ := r.Current("s")
	content, err := s.Content()
	if err != nil || !strings.Contains(string(content), "What it is.") {
		t.Fatalf("%v, %q", err, content)
	}
	again, err := ReadSet(content)
	if err != nil || again.Version() != s.Version() || again.Files() != 1 {
		t.Errorf("%v: version %s, was %s", err, again.Version(), s.Version())
	}
}
