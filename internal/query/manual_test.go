package query

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var (
	span    = regexp.MustCompile("`([^`]+)`")
	remark  = regexp.MustCompile(`\s{2,}# .*$`)
	inShell = regexp.MustCompile(`-q '([^']*)'`)
)

// TestTheManualHolds checks that docs/query.md agrees with the language. Every example in the
// manual must be valid. An example is code with a colon, a block named query, or a text after -q.
// Every mistake must result in the error in the manual. The table must contain all fields in the
// order of the help, each with the example from the help.
func TestTheManualHolds(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/query.md")
	if err != nil {
		t.Fatal(err)
	}
	help := Help()
	var block, wrong string
	var fields []Field
	examples, mistakes := 0, 0
	example := func(line int, text string) {
		examples++
		// this field is masked in the test
		if _, err := Parse(text, atNow); err != nil && !strings.HasPrefix(text, "app:") {
			t.Errorf("line %d: %s: %v", line+1, text, err)
		}
	}
	for i, line := range strings.Split(string(raw), "\n") {
		switch name, fence := strings.CutPrefix(line, "```"); {
		case fence:
			block = name
		case block == "query":
			example(i, remark.ReplaceAllString(line, ""))
		case block == "sh":
			example(i, inShell.FindStringSubmatch(line)[1])
		case block == "mistake" && wrong == "":
			wrong = line
		case block == "mistake":
			if _, err := Parse(wrong, atNow); err == nil || err.Error() != line {
				t.Errorf("line %d: %s is answered %v", i+1, wrong, err)
			}
			mistakes, wrong = mistakes+1, ""
		default:
			for _, s := range span.FindAllStringSubmatch(line, -1) {
				if strings.Contains(s[1], ":") {
					example(i, s[1])
				}
			}
			cells := strings.Split(line, " | ")
			if name := Field(strings.TrimPrefix(cells[0], "| ")); len(cells) == 3 && slices.Contains(Fields, name) {
				if n := len(fields); n >= len(help) || cells[1] != "`"+help[n].Example+"`" {
					t.Errorf("line %d: the help has another example, or another order", i+1)
				}
				fields = append(fields, name)
				for _, v := range enumerations[name].values {
					if !strings.Contains(cells[2], v) {
						t.Errorf("line %d: %s is missing", i+1, v)
					}
				}
			}
		}
	}
	if !slices.Equal(fields, Fields) {
		t.Errorf("the table has %s, and the fields are %s", fields, Fields)
	}
	if examples < 60 || mistakes < 6 {
		t.Errorf(
			"%d examples and %d mistakes were found: is the manual still written as this test reads it?", examples,
			mistakes,
		)
	}
}

// TestTheManualOfTheAuditHolds checks that the manual's table contains all fields for queries of
// the audit, in the order of the help and with the examples from the help. The examples must be
// valid.
func TestTheManualOfTheAuditHolds(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	var fields []Field
	examples := 0
	example := func(text string) {
		examples++
		if _, err := Parse(text, Options{Fields: ActFields}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for line := range strings.Lines(string(raw)) {
		if m := inShell.FindStringSubmatch(line); m != nil {
			example(m[1])
		}
		cells := strings.Split(line, " | ")
		name := Field(strings.TrimPrefix(cells[0], "| "))
		if len(cells) != 3 || !slices.Contains(ActFields, name) {
			continue
		}
		for _, s := range span.FindAllStringSubmatch(line, -1) {
			if strings.Contains(s[1], ":") {
				example(s[1])
			}
		}
		if n := len(fields); n >= len(ActFields) || cells[1] != "`"+ActHelp()[n].Example+"`" {
			t.Errorf("%s: the help has another example, or another order", name)
		}
		fields = append(fields, name)
		for _, v := range enumerations[name].values {
			if name == Via && !strings.Contains(cells[2], v) {
				t.Errorf("%s: %s is missing", name, v)
			}
		}
	}
	if !slices.Equal(fields, ActFields) || examples < 10 {
		t.Errorf("the table has %s, and the fields are %s; %d examples", fields, ActFields, examples)
	}
}

// TestEachLanguageHasItsFields checks that a query of letters rejects the fields of the audit, and
// that a query of the audit rejects the fields of letters. The error must list the fields that are
// permitted.
func TestEachLanguageHasItsFields(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"queue:sms":      `at character 1: there is no field "queue"; the fields are who, action, target, via, since, until; put text that contains a colon in quotes`,
		"action:resolve": `did you mean resolved?`,
		"via:pager":      `via has no value "pager" (did you mean page?); there are page, api, cli, dlo, not-recorded`,
		"since:1h,2h":    "since has one value",
		"until:1h,2h":    "until has one value",
		"until:tomorrow": "a time is written",
	} {
		if _, err := Parse(text, Options{Fields: ActFields}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := Parse("who:lena", Options{}); err == nil {
		t.Error("letters have no who")
	}
	if past, err := Parse(
		"action:Discarded,held", Options{Fields: ActFields},
	); err != nil || past.String() != "action:discard,hold" {
		t.Error(past, err)
	}
	yesterday, err := Parse("until:yesterday", Options{
		Fields: ActFields, Now: time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC),
	})
	if at := yesterday.Terms[0].Values[0].Time.Format("2006-01-02T15:04"); err != nil || at != "2026-11-21T00:00" {
		t.Error("a named day is not included whole", at, err)
	}
	day, err := Parse(`until:2026-11-20 who:"Lena Sato" action:"Schema Removed" target:g-4`, Options{Fields: ActFields})
	if err != nil || day.Terms[0].Values[0].Time.Format("2006-01-02T15:04") != "2026-11-21T00:00" ||
		day.String() != `until:2026-11-20 who:"Lena Sato" action:schema-removed target:G-4` {
		t.Errorf("%s, %v: %v", day, err, day.Terms[0].Values[0].Time)
	}
}

// TestTheManualSaysWhereStarsMayBe checks two lists in the manual. One contains the fields that
// permit stars anywhere. The other contains the fields that permit one star at the end.
func TestTheManualSaysWhereStarsMayBe(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/query.md")
	if err != nil {
		t.Fatal(err)
	}
	var anywhere, atTheEnd []string
	for _, f := range Fields {
		name := string(f)
		if f == Header || f == Body {
			name += ".x"
		}
		takes := func(value string) bool {
			_, err := Parse(name+":"+value, Options{Body: func(string) bool { return true }})
			return err == nil
		}
		switch {
		case takes("*a*"):
			anywhere = append(anywhere, string(f))
		case takes("a*"):
			atTheEnd = append(atTheEnd, string(f))
		}
	}
	_, section, _ := strings.Cut(string(raw), "### Stars\n")
	section, _, _ = strings.Cut(section, "\n###")
	var lists [][]string
	for _, bold := range regexp.MustCompile(`\*\*([^*]+)\*\*`).FindAllStringSubmatch(section, -1) {
		lists = append(lists, strings.Fields(strings.NewReplacer(" and ", " ", ",", "").Replace(bold[1])))
	}
	inAnyOrder := cmpopts.SortSlices(strings.Compare)
	if diff := cmp.Diff([][]string{anywhere, atTheEnd}, lists, inAnyOrder); diff != "" {
		t.Errorf("(-the language +the manual):\n%s", diff)
	}
}
