package payload

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// comparedJSON compares two JSON bodies. It masks the value at the path "card", and all numbers of
// 16 digits. It returns a text for each path: the path, and whether the values there are the same.
func comparedJSON(t *testing.T, a, b string, reveal bool) (list []string) {
	t.Helper()
	d := &Decoder{Mask: Masks{Patterns: []*regexp.Regexp{digits16}, JSON: []deadletter.FieldPath{{"card"}}}.Body()}
	x, y := d.Decode([]byte(a), Hints{}, nil), d.Decode([]byte(b), Hints{}, nil)
	for _, c := range Compare(x.Values(d.BytesMasked(x)), y.Values(d.BytesMasked(y)), reveal) {
		if strings.Contains(c.A+c.B, "secret") || strings.Contains(c.A+c.B, "4111") {
			t.Errorf("%s shows a masked value: %s, %s", c.Path, c.A, c.B)
		}
		list = append(list, c.Path+" "+string(c.Sameness))
	}
	return list
}

func TestCompare(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		a, b     string
		want     []string
		revealed []string // nil = the same as want
	}{
		{
			`{"a": 1, "b": {"c": "x"}, "d": [1, 2]}`,
			`{"d":[1,3,4],"b":{"c":"x","e":null},"a":1}`,
			[]string{"a same", "b.c same", "d[0] same", "d[1] different", "d[2] only_b", "b.e only_b"},
			nil,
		},
		{`{"a": 1}`, `{"a": "1"}`, []string{"a different"}, nil},
		{`{"a": []}`, `{"a": {}}`, []string{"a different"}, nil},
		{`{"a": [], "b": {}}`, `{"a": [], "b": {"c": 1}}`, []string{"a same", "b only_a", "b.c only_b"}, nil},
		{`{"a": "` + long + `"}`, `{"a": "` + long + `"}`, []string{"a same"}, nil},
		{`{"a": "` + long + `1"}`, `{"a": "` + long + `2"}`, []string{"a different"}, nil},
		{
			`{"card": "secret1", "x": 1}`,
			`{"card": "secret1", "x": 2}`,
			[]string{"card hidden", "x different"},
			[]string{"card same", "x different"},
		},
		{`{"card": "secret1"}`, `{"card":"secret2"}`, []string{"card hidden"}, []string{"card different"}},
		{`{"card": {"n": "secret1"}}`, `{"card":{"n":"secret1"}}`, []string{"card hidden"}, []string{"card same"}},
		{`{"card": 1}`, `{}`, []string{"card only_a"}, nil},
		{
			`{"t": "no 4111111111111111."}`,
			`{"t": "no 4111111111111112."}`,
			[]string{"t hidden"},
			[]string{"t different"},
		},
		{`{"t": "no 4111111111111111."}`, `{"t": "yes 4111111111111111."}`, []string{"t different"}, nil},
		{`{"t": "no ••••."}`, `{"t": "no 4111111111111111."}`, []string{"t hidden"}, nil},
		{
			`{"t": "` + long + `", "card": 1}`,
			`{"t": "` + long + `", "card": 1}`,
			[]string{"t unfinished", "card hidden"},
			[]string{"t unfinished", "card same"},
		},
		{
			`{"l": ["4111111111111111", 2]}`,
			`{"l": [ "4111111111111111",2 ]}`,
			[]string{"l[0] hidden", "l[1] same"},
			[]string{"l[0] same", "l[1] same"},
		},
		{"a text", "a text", []string{" same"}, nil},
		{"a text", "another text", []string{" different"}, nil},
		{"card 4111111111111111", "card 4111111111111112", []string{" hidden"}, []string{" different"}},
		{"a text", `{"a": 1}`, []string{" only_a", "a only_b"}, nil},
		{"\x00\xffsecret1", "\x00\xffsecret2", []string{" hidden"}, []string{" different"}},
		{"", "", nil, nil},
	} {
		if got := comparedJSON(t, c.a, c.b, false); !cmp.Equal(got, c.want) {
			t.Errorf("%.80s\n%.80s\n%s", c.a, c.b, cmp.Diff(c.want, got))
		}
		want := c.revealed
		if want == nil {
			want = c.want
		}
		if got := comparedJSON(t, c.a, c.b, true); !cmp.Equal(got, want) {
			t.Errorf("revealed: %.80s\n%.80s\n%s", c.a, c.b, cmp.Diff(want, got))
		}
	}
}

// TestListsAreComparedAsFarAsTheyAreShown checks that parts that the tree omits are not reported as
// equal.
func TestListsAreComparedAsFarAsTheyAreShown(t *testing.T) {
	t.Parallel()
	list := `[` + strings.Repeat("1,", 150) + `1]`
	got := comparedJSON(t, list, list, true)
	if len(got) != maxItems+1 || !strings.HasSuffix(got[maxItems], "unfinished") {
		t.Errorf("%d fields, then %v", len(got), got[len(got)-1])
	}
}

func TestCompareMessages(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: schemas(), Mask: pattern}
	a := d.Decode(
		encode(
			t, email,
			`{"requestId": "a", "to": {"address": "x@y", "displayName": "Dana"}, "variables": {"b": "1", "a": "2"}}`,
		),
		Hints{Type: email}, nil,
	)
	b := d.Decode(
		encode(
			t, email,
			`{"requestId": "b", "to": {"address": "x@z", "displayName": "Dana"}, "variables": {"c": "1", "a": "2"}}`,
		),
		Hints{Type: email}, nil,
	)
	got := map[string]Sameness{}
	for _, c := range Compare(a.Values(d.BytesMasked(a)), b.Values(d.BytesMasked(b)), false) {
		got[c.Path] = c.Sameness
	}
	for path, want := range map[string]Sameness{
		"request_id": Different, "to.address": Hidden, "to.display_name": Equal, "variables.b": OnlyA,
		"variables.c": OnlyB, "variables.a": Equal, "tenant_id": Equal,
	} {
		if got[path] != want {
			t.Errorf("%s: %q, want %q in %v", path, got[path], want, got)
		}
	}
}
