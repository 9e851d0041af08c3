package cli

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestRulesThatAreTriedAsATable checks the table for rules that were tried. It must compare the
// real outcomes with those under the tried rules. Control characters must be escaped.
func TestRulesThatAreTriedAsATable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"matching":312,"exact":true,"looked":312,"late":0,"left_out":0,"notes":["The text has no default.\u001b"],
		"fates":[{"was":{"state":"dead","rule":"a\u001b[31m","severity":"digest","delays":"1 s, then dead: digest"},"would":{"rule":"b","action":"retry","severity":"","delays":"5 s, then dead: page"},"same":false,"letters":24,"examples":["1","2"],"q":"id:1,2"},
		{"was":{"state":"dead","rule":"","severity":"page","delays":""},"would":{"rule":"b","action":"dead","severity":"page","delays":"5 s, then dead: page"},"same":true,"letters":288,"examples":["3"]}]}`)
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	err := Run(Program{
		Ctx: t.Context(), Getenv: func(string) string { return "" }, Stdout: &out, Stderr: &errs,
	}, &struct{}{}, []string{"rules", "test", "--server", server.URL})
	const want = `LETTERS  CHANGES  NOW                        WOULD           RETRIES               SUCH AS
24       yes      a\x1b[31m: dead (digest)  b: retry        5 s, then dead: page  1 2
288      no       dead (page)                b: dead (page)  5 s, then dead: page  3
`
	if fields := func(s string) string {
		return strings.Join(
			strings.Fields(s), " ",
		)
	}; err != nil || fields(out.String()) != fields(want) {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
	if got, want := errs.String(), "looked at 312 of 312 letters, newest first\nThe text has no default.\\x1b\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTheRulesOfAFileAreSent checks that the request contains the text of the rules file unchanged.
// An error about the rules must name the file.
func TestTheRulesOfAFileAreSent(t *testing.T) {
	t.Parallel()
	var asked []string
	refuse := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.URL.Path+" "+string(body))
		if refuse {
			w.WriteHeader(http.StatusBadRequest)
			w.Write([]byte(`{"title":"Bad Request","detail":"d","mistakes":[{"line":2,"column":3,"text":"one\u001b"},{"text":"and 3 more"}]}`))
			return
		}
		w.Write([]byte(`{"notes":[],"fates":[]}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(file, []byte("- name: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(stdin string, args ...string) error {
		return Run(Program{
			Ctx: t.Context(), Getenv: func(string) string { return "" }, Stdin: strings.NewReader(stdin),
			Stdout: io.Discard, Stderr: io.Discard,
		}, &struct{}{}, append([]string{"rules", "test", "--server", server.URL}, args...))
	}
	for _, c := range []struct{ stdin, args, want string }{
		{"", "--config " + file, `{"limit":500,"rules":"- name: a\n"}`},
		{"", "--config " + file + " -q queue:sms -n 20 -o json", `{"limit":20,"q":"queue:sms","rules":"- name: a\n"}`},
		{"- name: b", "--config - -q queue:sms", `{"limit":500,"q":"queue:sms","rules":"- name: b"}`},
		{"", "--config - -q id:c1c5052d", `{"limit":500,"q":"id:c1c5052d","rules":""}`},
		{"", "", `{"limit":500}`},
	} {
		asked = nil
		if err := run(
			c.stdin, strings.Fields(c.args)...,
		); err != nil || len(asked) != 1 || asked[0] != "/api/v1/rules/test "+c.want {
			t.Errorf("%s: %v, asked %s", c.args, err, asked)
		}
	}
	refuse = true
	for name, stdin := range map[string]string{file: "", "-": "x"} {
		var errs bytes.Buffer
		code := ExitCode(run(stdin, "--config", name), &errs)
		if shown := strings.Replace(
			name, "-", "standard input", map[bool]int{true: 1}[name == "-"],
		); code != ExitUsage || errs.String() != "dlo: "+shown+":2:3: one\\x1b\nand 3 more\n" {
			t.Errorf("%d: %s", code, errs.String())
		}
	}
	asked = nil
	if err := run("", "--config", file+"x"); !errors.Is(err, errUsage) || len(asked) != 0 {
		t.Errorf("a file that is not there: %v, asked %s", err, asked)
	}
	if err := run("", "c1c5052d"); !errors.Is(err, errUsage) {
		t.Errorf("an argument that is not a flag: %v", err)
	}
	if err := error(refused{kind: deadletter.ErrInvalid, mistakes: []deadletter.Mistake{{Text: "x"}}}); !errors.Is(err, deadletter.ErrInvalid) {
		t.Error("a mistake in rules is not said to be one")
	}
}
