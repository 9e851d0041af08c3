package payload

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// diffText returns a diff as the pages show it, with [] around the changed parts of a line.
func diffText(lines []DiffLine) string {
	var w strings.Builder
	for _, l := range lines {
		w.WriteString(map[DiffOp]string{Same: "  ", Removed: "- ", Added: "+ ", LeftOut: "@ "}[l.Op])
		if l.Op == LeftOut {
			fmt.Fprint(&w, l.Left)
		}
		for _, s := range l.Spans {
			if s.Changed {
				w.WriteString("[" + s.Text + "]")
			} else {
				w.WriteString(s.Text)
			}
		}
		w.WriteString("\n")
	}
	return w.String()
}

func TestDiff(t *testing.T) {
	t.Parallel()
	list := func(s string) string { return strings.Join(strings.Split(s, " "), "\n") }
	tests := []struct {
		name, before, after, want string
	}{
		{"the same", "a\nb", "a\nb", ""},
		{
			"a word", `"name": "welcome_v3",`, `"name": "welcome_v2",`,
			"- \"name\": \"welcome_[v3]\",\n+ \"name\": \"welcome_[v2]\",\n",
		},
		{"words in a line", "one two three four", "one 2 three 4", "- one [two] three [four]\n+ one [2] three [4]\n"},
		{"a new line", list("a b c"), list("a b x c"), "  a\n  b\n+ [x]\n  c\n"},
		{"a line less", list("a b c"), list("a c"), "  a\n- [b]\n  c\n"},
		{
			"far lines are left out", list("1 2 3 4 5 6 a 7 8 9 10 11 12"), list("1 2 3 4 5 6 b 7 8 9 10 11 12"),
			"@ 3\n  4\n  5\n  6\n- [a]\n+ [b]\n  7\n  8\n  9\n@ 3\n",
		},
		{
			"between two changes", list("a 1 2 3 4 5 6 7 8 b"), list("x 1 2 3 4 5 6 7 8 y"),
			"- [a]\n+ [x]\n  1\n  2\n  3\n@ 2\n  6\n  7\n  8\n- [b]\n+ [y]\n",
		},
		{
			"a single line is not left out", list("a 1 2 3 4 5 6 7 b"), list("x 1 2 3 4 5 6 7 y"),
			"- [a]\n+ [x]\n  1\n  2\n  3\n  4\n  5\n  6\n  7\n- [b]\n+ [y]\n",
		},
		{"moved", list("a b c d"), list("c a b d"), "+ [c]\n  a\n  b\n- [c]\n  d\n"},
		{"to nothing", "a", "", "- [a]\n+ \n"},
		{"letters of any script", "Grüße 東京", "Grüße 大阪", "- Grüße [東京]\n+ Grüße [大阪]\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := diffText(Diff(tt.before, tt.after)); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
}

func TestDiffIsBounded(t *testing.T) {
	t.Parallel()
	var a, b strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&a, "a %d\n", i)
		fmt.Fprintf(&b, "b %d\n", i)
	}
	lines := Diff(a.String(), b.String())
	if n := len(lines); n != maxDiffLines+1 || lines[n-1].Op != LeftOut || lines[n-1].Left != 100_001-maxDiffLines {
		t.Errorf("%d lines, the last is %+v", n, lines[n-1])
	}
	lines = Diff(
		strings.Repeat("x ", 1<<20)+"a"+strings.Repeat(" y", 1<<20),
		strings.Repeat("x ", 1<<20)+"b"+strings.Repeat(" y", 1<<20),
	)
	if got := diffText(lines); len(got) > 5_000 || !strings.Contains(got, "x …") || !strings.Contains(got, "[a]") {
		t.Errorf("got %d bytes", len(got))
	}
}

// TestDiffRandomTexts compares two random texts. If the diff shows every line, both texts must be
// contained in it completely.
func TestDiffRandomTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a b", "b, c", "ä", ""}), 1, 30)
		a, b := text.Draw(t, "before"), text.Draw(t, "after")
		if strings.Join(a, "\n") == strings.Join(b, "\n") {
			return
		}
		var old, now []string
		i := 0
		for _, l := range Diff(strings.Join(a, "\n"), strings.Join(b, "\n")) {
			var w strings.Builder
			for _, s := range l.Spans {
				w.WriteString(s.Text)
			}
			switch line := w.String(); l.Op {
			case Same:
				old, now = append(old, line), append(now, line)
			case Removed:
				old = append(old, line)
			case Added:
				now = append(now, line)
			case LeftOut:
				i = len(old)
				old, now = append(old, a[i:i+l.Left]...), append(now, a[i:i+l.Left]...)
			}
		}
		if strings.Join(old, "\n") != strings.Join(a, "\n") || strings.Join(now, "\n") != strings.Join(b, "\n") {
			t.Fatalf("%q to %q", old, now)
		}
	})
}
