package payload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestPatch(t *testing.T) {
	t.Parallel()
	masked := `{"card":"` + card + `","to":{"card":"` + card + `","name":"Dana"},"list":["` + card + `","b"],"map":{"` +
		card + `":1,"k":2}}`
	tests := []struct {
		name, body, patch, want string // the new body; "!" and a text = the error contains the text
	}{
		{"nothing", `{"a":1}`, `[]`, `{"a":1}`},
		{
			"replace", `{"a":1,"b":2.50}`, `[{"op":"replace","path":"/a","value":{"x":[1e2]}}]`,
			`{"a":{"x":[1e2]},"b":2.50}`,
		},
		{"replace the document", `{"a":1}`, `[{"op":"replace","path":"","value":[1]}]`, `[1]`},
		{
			"replace what is not there", `{"a":1}`, `[{"op":"replace","path":"/b","value":1}]`,
			`!line 1, column 25: /b: there is no such value in this letter`,
		},
		{"add", `{"a":1}`, `[{"op":"add","path":"/b","value":null}]`, `{"a":1,"b":null}`},
		{"add what is there", `{"a":1,"b":2}`, `[{"op":"add","path":"/a","value":3}]`, `{"a":3,"b":2}`},
		{
			"add to nothing", `{"a":1}`, `[{"op":"add","path":"/b/c","value":3}]`,
			`!line 1, column 21: /b/c: there is no such value`,
		},
		{
			"add to a number", `{"a":1}`, `[{"op":"add","path":"/a/c","value":3}]`,
			`!line 1, column 21: /a/c: there is no such value`,
		},
		{"insert", `[1,2]`, `[{"op":"add","path":"/1","value":3}]`, `[1,3,2]`},
		{"append by number", `[1,2]`, `[{"op":"add","path":"/2","value":3}]`, `[1,2,3]`},
		{"append", `{"a":[1,2]}`, `[{"op":"add","path":"/a/-","value":3}]`, `{"a":[1,2,3]}`},
		{
			"behind the end", `[1,2]`, `[{"op":"add","path":"/3","value":3}]`,
			`!line 1, column 21: /3: the list has only 2 elements`,
		},
		{
			"end of a list that is no place", `[1,2]`, `[{"op":"replace","path":"/-","value":3}]`,
			`!line 1, column 25: /-: this is a list: write the number`,
		},
		{"leading zero", `[1,2]`, `[{"op":"remove","path":"/01"}]`, `!line 1, column 24: /01: this is a list`},
		{"sign", `[1,2]`, `[{"op":"remove","path":"/+1"}]`, `!line 1, column 24: /+1: this is a list`},
		{"remove", `{"a":1,"b":2}`, `[{"op":"remove","path":"/a"}]`, `{"b":2}`},
		{"remove an element", `[1,2,3]`, `[{"op":"remove","path":"/1"}]`, `[1,3]`},
		{
			"remove all", `{"a":1}`, `[{"op":"remove","path":""}]`,
			`!line 1, column 24: the whole document cannot be removed`,
		},
		{"move", `{"a":{"x":1},"b":2}`, `[{"op":"move","from":"/a/x","path":"/c"}]`, `{"a":{},"b":2,"c":1}`},
		{"move in a list", `[1,2,3]`, `[{"op":"move","from":"/0","path":"/2"}]`, `[2,3,1]`},
		{"move to where it is", `[1,2,3]`, `[{"op":"move","from":"/0","path":"/0"}]`, `[1,2,3]`},
		{
			"move into itself", `{"a":{"x":1}}`, `[{"op":"move","from":"/a","path":"/a/x"}]`,
			`!line 1, column 34: /a/x: a value cannot be moved into itself`,
		},
		{
			"copy", `{"a":{"x":1}}`, `[{"op":"copy","from":"/a","path":"/b"},{"op":"replace","path":"/b/x","value":2}]`,
			`{"a":{"x":1},"b":{"x":2}}`,
		},
		{
			"test", `{"a":{"x":[1.0,"é"],"y":null}}`,
			`[{"op":"test","path":"/a","value":{"y":null,"x":[10e-1,"\u00e9"]}},{"op":"replace","path":"/a","value":1}]`,
			`{"a":1}`,
		},
		{
			"test that fails", `{"a":1}`,
			`[{"op":"replace","path":"/a","value":2},{"op":"test","path":"/a","value":1}]`,
			`!line 1, column 61: /a: the value is another one in this letter`,
		},
		{
			"test of a number that no double has", `{"a":9007199254740.9931}`,
			`[{"op":"test","path":"/a","value":9007199254740.9932}]`,
			`!line 1, column 22: /a: the value is another one`,
		},
		{
			"escapes", `{"a/b":1,"m~n":2,"~1":3,"":4}`,
			`[{"op":"replace","path":"/a~1b","value":5},{"op":"replace","path":"/m~0n","value":6},{"op":"replace","path":"/~01","value":7},{"op":"replace","path":"/","value":8}]`,
			`{"a/b":5,"m~n":6,"~1":7,"":8}`,
		},
		{
			"escape that is none", `{"a":1}`, `[{"op":"remove","path":"/a~2"}]`,
			`!line 1, column 24: /a~2: ~ goes before 0 or 1 only`,
		},
		{
			"path without a slash", `{"a":1}`, `[{"op":"remove","path":"a"}]`,
			`!line 1, column 24: a: a path begins with /`,
		},
		{"new lines stay", "{\n\"a\":1}", `[{"op":"add","path":"/b","value":2}]`, "{\n  \"a\": 1,\n  \"b\": 2\n}"},

		{"no patch", `{"a":1}`, `{"op":"remove"}`, `!line 1, column 1: a patch is a list of operations`},
		{"no operation", `{"a":1}`, `[1]`, `!line 1, column 2: an operation is an object`},
		{
			"operation that is none", `{"a":1}`, `[{"op":"delete","path":"/a"}]`,
			`!line 1, column 8: delete: there is no such operation`,
		},
		{"no path", `{"a":1}`, `[{"op":"remove"}]`, `!line 1, column 2: the operation needs "path", a text`},
		{"no value", `{"a":1}`, `[{"op":"add","path":"/b"}]`, `!line 1, column 21: /b: the operation needs "value"`},
		{"no from", `{"a":1}`, `[{"op":"copy","path":"/b"}]`, `!line 1, column 2: the operation needs "from", a text`},
		{
			"name twice", `{"a":1}`, `[{"op":"add","path":"/b","value":1,"value":2}]`,
			`!line 1, column 36: [0].value: this name is there twice`,
		},
		{
			"a growing document", `[1]`,
			`[` + strings.Repeat(`{"op":"copy","from":"","path":"/-"},`, 40) + `{"op":"remove","path":"/1"}]`,
			`!the patch makes too large a document`,
		},
		{"text", `hello`, `[]`, `!a patch changes JSON, and this body is text`},

		{
			"masked: test", masked,
			`[{"op":"test","path":"/card","value":"` + card + `"},{"op":"remove","path":"/map"}]`,
			`{"card":"` + card + `","to":{"card":"` + card + `","name":"Dana"},"list":["` + card + `","b"]}`,
		},
		{"masked: dots that are stored", `{"a":"••••","n":1}`, `[{"op":"remove","path":"/n"}]`, `{"a":"••••"}`},
		{
			"masked: more dots than stored", `{"a":"••••","n":1}`, `[{"op":"replace","path":"/n","value":"••••"}]`,
			`!n: •••• stands for`,
		},
		{
			"masked: dots as a value", masked, `[{"op":"add","path":"/x","value":["••••"]}]`,
			`!•••• stands for a value that is masked`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := patternMask().Patch([]byte(tt.body), Hints{}, []byte(tt.patch), nil)
			if want, fails := strings.CutPrefix(tt.want, "!"); fails {
				if err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			} else if err != nil || string(e.Body) != want {
				t.Errorf("got %+v, %v", e, err)
			}
		})
	}
}

func TestPatchOfMessages(t *testing.T) {
	t.Parallel()
	body := encodeStd(sample(t))
	e, err := editor().Patch(
		body, Hints{Type: email},
		[]byte(
			`[{"op":"test","path":"/tenantId","value":"48213"},{"op":"replace","path":"/template/name","value":"welcome_v2"},{"op":"add","path":"/variables/a.b","value":"x"}]`,
		),
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(e.Changed, []string{"template.name", "variables.a.b"}) ||
		!strings.Contains(checksText(e), "ok 1 field that the JSON does not show, 13 B, carried over") {
		t.Errorf("changed %v, checks %s", e.Changed, checksText(e))
	}
	if got := editText(
		t, editor(), e.Body, Hints{Type: email},
	); !strings.Contains(got, `"name": "welcome_v2"`) || !strings.Contains(got, `"a.b": "x"`) {
		t.Errorf("got %s", got)
	}
	_, err = editor().Patch(body, Hints{Type: email}, []byte(`[{"op":"replace","path":"/tenantId","value":"x"}]`), nil)
	if err == nil || !strings.HasPrefix(err.Error(), "tenantId: write a whole number") {
		t.Errorf("got %v", err)
	}
}

func TestPlainNumber(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"0", "-0", "0.00", "0e5"},
		{"1", "1.0", "10e-1", "0.1E1", "0.01e+2"},
		{"-120", "-1.2e2", "-12e1"},
		{"9007199254740993"},
		{"1e400", "10e399"},
	} {
		for _, n := range same {
			if plainNumber(n) != plainNumber(same[0]) {
				t.Errorf("%s is %s, %s is %s", n, plainNumber(n), same[0], plainNumber(same[0]))
			}
		}
	}
	if plainNumber("9007199254740993") == plainNumber("9007199254740992") || plainNumber("1") == plainNumber("-1") ||
		plainNumber("1e1") == plainNumber("1e2") {
		t.Error("different numbers are the same")
	}
}

// TestAPatchThatMakesMuchOfLittle covers a small patch that puts a long text into many places. It
// must be rejected before the result is written. Otherwise, a patch of 64 KiB would become a GB.
func TestAPatchThatMakesMuchOfLittle(t *testing.T) {
	t.Parallel()
	body := []byte(`{"a":"` + strings.Repeat("x", 1_000_000) + `"}`)
	var ops []string
	for i := range maxPatchOps {
		ops = append(ops, fmt.Sprintf(`{"op":"copy","from":"/a","path":"/c%d"}`, i))
	}
	patch := []byte("[" + strings.Join(ops, ",") + "]")
	_, err := (&Decoder{}).Patch(body, Hints{ContentType: "application/json"}, patch, nil)
	if err == nil || !strings.Contains(err.Error(), "more than 2 MiB") {
		t.Error(err)
	}
}
