package deadletter_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, visible, lines string }{
		{"plain text", "Grüße, 世界 <script> 🙂", "Grüße, 世界 <script> 🙂", "Grüße, 世界 <script> 🙂"},
		{"ANSI", "\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`, `\x1b[31mred\x1b[0m`},
		{"C1 control", "a\u009b31m", `a\u009b31m`, `a\u009b31m`},
		{"line breaks and tabs", "a\nb\r\nc\td", `a\nb\r\nc\td`, "a\nb\nc\td"},
		{"a lone carriage return hides nothing", "safe\rEVIL", `safe\rEVIL`, `safe\rEVIL`},
		{"NUL and DEL", "a\x00b\x7f", `a\x00b\x7f`, `a\x00b\x7f`},
		{
			"bidirectional overrides", "\u202egnp\u202c.exe\u2066x\u2069", `\u202egnp\u202c.exe\u2066x\u2069`,
			`\u202egnp\u202c.exe\u2066x\u2069`,
		},
		{
			"zero width", "a\u200bb\ufeffc\u2060d\u00ade", `a\u200bb\ufeffc\u2060d\u00ade`,
			`a\u200bb\ufeffc\u2060d\u00ade`,
		},
		{"line separators", "a\u2028b\u2029c\u0085d", `a\u2028b\u2029c\u0085d`, `a\u2028b\u2029c\u0085d`},
		{"spaces that look like one", "a\u00a0b\u3000c", `a\u00a0b\u3000c`, `a\u00a0b\u3000c`},
		{"fillers", "\u3164\u115f\uffa0", `\u3164\u115f\uffa0`, `\u3164\u115f\uffa0`},
		{"variation selectors", "a\ufe0f\U000e0100", `a\ufe0f\U000e0100`, `a\ufe0f\U000e0100`},
		{"tags and private use", "\U000e0041\ue000", `\U000e0041\ue000`, `\U000e0041\ue000`},
		{"invalid UTF-8", "a\xffb\xc3", `a\xffb\xc3`, `a\xffb\xc3`},
		{"a replacement character of its own", "a\ufffdb", "a\ufffdb", "a\ufffdb"},
		{"a surrogate half", "\xed\xa0\x80", `\xed\xa0\x80`, `\xed\xa0\x80`},
		{"nothing", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := deadletter.Visible(c.text); got != c.visible {
				t.Errorf("Visible: %q, want %q", got, c.visible)
			}
			if got := deadletter.VisibleLines(c.text); got != c.lines {
				t.Errorf("VisibleLines: %q, want %q", got, c.lines)
			}
		})
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "lo…"},
		{"ééééé", 10, "ééééé"},
		{"éééééé", 10, "ééé…"}, // 7 bytes are left for letters, and the 4th letter does not fit
		{"世界世界", 9, "世界…"},
		{"abcdef", 3, "…"},
		{"abcdef", 2, ""},
		{"abcdef", 0, ""},
		{"abcdef", -1, ""},
		{"", 0, ""},
		{"\x80\x80\x80\x80\x80\x80", 5, "…"},
	} {
		if got := deadletter.Cut(c.text, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// hostile contains texts that must not be shown to people or terminals without escapes.
var hostile = []string{
	"", "plain", "\x1b]0;title\x07", "\u202eevil\u202c", "a\u200bb", "\xff\xfe\xed\xa0\x80", "\r\nInjected: yes",
	"<script>alert(1)</script>", strings.Repeat("x", 1000), "\U000e0041\u3164",
	"a\r\n\tb", "\x00", "🙂\ufe0f", "\ufffd",
}

// FuzzVisible checks that the result is valid UTF-8 without control or format characters. A text
// that needs no escapes must stay the same.
func FuzzVisible(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, got := range map[string]string{
			"Visible": deadletter.Visible(s), "VisibleLines": deadletter.VisibleLines(s),
		} {
			if !utf8.ValidString(got) {
				t.Fatalf("%s: %q is not UTF-8", name, got)
			}
			for _, r := range got {
				if name == "VisibleLines" && (r == '\n' || r == '\t') {
					continue
				}
				if !unicode.IsPrint(r) || unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Variation_Selector) {
					t.Fatalf("%s leaves %U in %q", name, r, got)
				}
			}
			if got != deadletter.Visible(got) && name == "Visible" {
				t.Fatalf("%q is not visible yet", got)
			}
		}
		if one := deadletter.Visible(s); strings.Count(one, "\n") > 0 {
			t.Fatalf("%q has more than one line", one)
		}
	})
}

// FuzzCut checks that a text which Cut has shortened has at most n bytes. The shortened text must
// be the beginning of the text with an ellipsis, and must not split a character.
func FuzzCut(f *testing.F) {
	for i, s := range hostile {
		f.Add(s, i)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		got := deadletter.Cut(s, n)
		if len(got) > max(n, 0) {
			t.Fatalf("Cut(%q, %d) has %d bytes", s, n, len(got))
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Fatalf("Cut(%q, %d) = %q", s, n, got)
		}
		if got != s && got != "" && !strings.HasPrefix(s, strings.TrimSuffix(got, "…")) {
			t.Fatalf("Cut(%q, %d) = %q", s, n, got)
		}
	})
}

func TestEscapedJSONHasTheSameValues(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"plain é", "\u202e\u200b", "\U000e0041 \u3164", "line\nbreak\x7f"} {
		b, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		escaped := deadletter.EscapeJSON(string(b))
		var back string
		if err := json.Unmarshal(
			[]byte(escaped), &back,
		); err != nil || back != text || deadletter.Visible(escaped) != escaped {
			t.Errorf("%q: %q %v", text, escaped, err)
		}
	}
}
