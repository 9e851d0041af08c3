package testenv

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// page is a component whose output is the string itself.
type page string

func (p page) Render(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, string(p))
	return err
}

func TestGoldenPage(t *testing.T) {
	Golden(t, "golden.html", page(`<!DOCTYPE html><html lang="en"><head><title>Letters</title></head>
<body><!-- list --><table><tr class="odd"><td>one <b>bold</b>
  word</td><td><a href="/letters/1?a=1&amp;b=2">open</a><br></td></tr></table><pre>  kept
 as is</pre></body></html>`))
}

func TestOutlineOfAPart(t *testing.T) {
	got, err := outline("<tr id=a><td>  one\n two </td><td></td></tr>\n<p>three")
	if err != nil {
		t.Fatal(err)
	}
	want := "<tr id=\"a\">\n  <td> one two\n  <td>\n<p> three\n"
	if got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// told is a testing.TB that records failures. It does not fail the real test.
type told struct {
	testing.TB
	errors []string
}

type ended struct{}

func (t *told) Helper()                        {}
func (t *told) Errorf(format string, _ ...any) { t.errors = append(t.errors, format) }
func (t *told) Fatalf(format string, _ ...any) { t.errors = append(t.errors, format); panic(ended{}) }

func (t *told) Fatal(...any) { t.errors = append(t.errors, "fatal"); panic(ended{}) }

func (t *told) Skip(...any) { t.errors = append(t.errors, "skip"); panic(ended{}) }

// run calls f. It returns when f returns or ends its test.
func (t *told) run(f func(testing.TB)) {
	defer func() {
		if r := recover(); r != nil && r != (ended{}) {
			panic(r)
		}
	}()
	f(t)
}

func TestGoldenTellsADifference(t *testing.T) {
	if *update {
		t.Skip("-update makes every page right")
	}
	for name, p := range map[string]page{"golden.html": "<p>other", "no-such-file.html": "<p>"} {
		fake := &told{TB: t}
		fake.run(func(t testing.TB) { Golden(t, name, p) })
		if len(fake.errors) != 1 || !strings.Contains(fake.errors[0], "-update") {
			t.Errorf("%s: told %q", name, fake.errors)
		}
	}
}

func TestUnavailableSkipsOrFails(t *testing.T) {
	for _, c := range []struct {
		name    string
		require string
		err     error
		want    string
	}{
		{"not installed", "", ErrMissing, "skip"},
		{"not installed but required", "1", ErrMissing, "fatal"},
		{"broken", "", errors.New("broken"), "fatal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("DLO_TEST_REQUIRE", c.require)
			fake := &told{TB: t}
			fake.run(func(t testing.TB) { Unavailable(t, c.err) })
			if len(fake.errors) != 1 || fake.errors[0] != c.want {
				t.Errorf("told %q, want %s", fake.errors, c.want)
			}
		})
	}
}
