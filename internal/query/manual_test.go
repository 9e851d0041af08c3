package query

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var (
	span    = regexp.MustCompile("`([^`]+)`")
	remark  = regexp.MustCompile(`\s{2,}# .*$`)
	inShell = regexp.MustCompile(`-q '([^']*)'`)
)

// The manual is held to the language: every example in it parses (code with a colon, blocks named
// query, what stands behind -q), every mistake is answered as it says, and its table has all fields
// in the order of the help, each with the example of the help.
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
		if _, err := Parse(text, atNow); err != nil && !strings.HasPrefix(text, "app:") { // which is masked in these tests
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
		t.Errorf("%d examples and %d mistakes were found: is the manual still written as this test reads it?", examples, mistakes)
	}
}

// TestTheManualSaysWhereStarsMayBe: its section has two lists, the fields that take stars anywhere
// and those that take one at the end.
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
