package deadletter

import "testing"

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true},
		{"*", "a.b/c", true},
		{"a*c", "abbc", true},
		{"a*c", "abbd", false},
		{"*a*b*", "xxaxxbxx", true},
		{"?", "", false},
		{"?b", "ab", true},
		{"", "", true},
		{"", "a", false},
		{"a**", "a", true},
		{"*.dlq", "x.dlq", true},
		{"[a]", "a", false},
	} {
		if got := Glob(c.pattern, c.name, true); got != c.want {
			t.Errorf("Glob(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}
