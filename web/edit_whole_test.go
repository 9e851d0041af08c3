package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// wholeField returns the value of a checkbox for a header that has no input field of its own.
func wholeField(t *testing.T, page, box, header string) string {
	t.Helper()
	m := regexp.MustCompile(
		`(?s)<code class="grow break">` + regexp.QuoteMeta(header) + `</code>.*?name="` + box + `" value="([0-9a-f]+)"`,
	).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no box %s of %s", box, header)
	}
	return m[1]
}

// TestWhatCannotBeSentIsCutOnItsPage covers a letter whose body nobody can edit. One header of the
// letter is larger than a frame, and another one could not be read. The page must name both
// headers. The browser cuts or removes them.
func TestWhatCannotBeSentIsCutOnItsPage(t *testing.T) {
	t.Parallel()
	h := open(t, withTypes)
	stack := strings.Repeat("at Shop.Order(Int32 n) in /src/Shop.cs:line 42\n", 2_800)
	h.headers = deadletter.Table{
		"x-exception-stacktrace": stack,
		"trace":                  deadletter.Unread{Field: []byte("A...."), Why: "nested deeper than 64"},
		"odd\xff\n":              "stays",
		"span":                   deadletter.Table{"a": int32(1)},
	}
	id := string(h.receive("email", 1, "\x08\x96\x01\xff\xfe")[0])
	h.get("/letters/"+id+"?tab=headers").want(t, 200, "could not be read: nested deeper than 64")
	path := "/letters/" + id + "/edit"
	page := h.get(path).want(
		t, 200, "The body is sent unchanged:",
		"The properties cannot be sent as they are: header &#34;trace&#34;: it could not be read (nested deeper than 64)",
		"longstr, 129 KiB", "Keep the first 4.0 KiB", "unread, ",
	).text
	if strings.Contains(page, stack[:100]) || len(page) > 40_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	form := url.Values{
		"from":   {"0"},
		"newest": {"0"},
		"key":    {field(t, page, "key")},
		"reason": {"too large"},
		"do":     {"send"},
	}
	h.post(path, form).want(t, 400, "Nothing was sent", "it could not be read")
	form.Set("whole_remove", wholeField(t, page, "whole_remove", "trace"))
	h.post(path, form).want(
		t, 400, "Nothing was sent", "header &#34;x-exception-stacktrace&#34; takes 131", "shorten or remove it",
	)
	form.Set("whole_cut", wholeField(t, page, "whole_cut", "x-exception-stacktrace"))
	h.post(path, form).want(t, 303)
	l, err := h.store.Letter(t.Context(), deadletter.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	got := l.Revised.Properties.Headers
	if text, _ := got["x-exception-stacktrace"].(string); len(text) > 4096 || len(text) < 4090 ||
		!strings.HasPrefix(stack, strings.TrimSuffix(text, "…")) {
		t.Errorf("the header is %.100q, %d bytes", text, len(text))
	}
	if _, there := got["trace"]; there || got["odd\xff\n"] != "stays" || got["span"] == nil ||
		string(l.Revised.Body) != "\x08\x96\x01\xff\xfe" {
		t.Errorf("%v", got)
	}
	if l.Arrived.Headers["x-exception-stacktrace"] != stack ||
		l.Revised.Changes != "header trace; header x-exception-stacktrace" {
		t.Errorf("changes %q", l.Revised.Changes)
	}
}

// TestWhatCannotBeSentIsCutByTheAPI covers a letter with two headers that cannot be sent: one is
// too large, and the other one could not be read. One API call cuts the first header and removes
// the second one. Before that, the test makes calls with mistakes, and the API must report them.
func TestWhatCannotBeSentIsCutByTheAPI(t *testing.T) {
	t.Parallel()
	h := open(t, withTypes)
	h.headers = deadletter.Table{
		"x-big": strings.Repeat("e", 131_000),
		"trace": deadletter.Unread{Field: []byte("A...."), Why: "nested deeper than 64"},
	}
	id := string(h.receive("email", 1, "\x08\x96\x01\xff\xfe")[0])
	h.get("/api/v1/letters/"+id).want(t, 200, `"trace":{"t":"unread","v":"nested deeper than 64","b":"QS4uLi4="}`)
	path := "/api/v1/letters/" + id + "/revisions"
	h.postJSON(path, `{"headers":{"trace":null},"reason":"r"}`).want(t, 400, `header \"x-big\" takes 131`)
	h.postJSON(path, `{"headers":{"x-big":"cut"},"reason":"r"}`).want(
		t, 400, `it could not be read (nested deeper than 64)`,
	)
	h.postJSON(
		path, `{"headers":{"x-big":"cut","trace":null},"reason":"r","requeue":true}`, "Idempotency-Key", "k",
	).want(t, 201, `"changes":"header trace; header x-big"`)
}

// TestALetterWithManyHeaders covers a letter with more headers than its page shows. The page must
// say how many headers it omits.
func TestALetterWithManyHeaders(t *testing.T) {
	t.Parallel()
	h := open(t, withTypes)
	h.headers = deadletter.Table{}
	for n := range 300 {
		h.headers[fmt.Sprintf("line-%03d", n)], h.headers[fmt.Sprintf("list-%03d", n)] = "v", []any{int32(n)}
	}
	id := string(h.receive("email", 1, "text")[0])
	// of 602 headers, the page shows 50 with a field and 30 without
	page := h.get("/letters/"+id+"/edit").want(
		t, 200, "522 more headers can be changed with the API or the command line.",
	).text
	if lines, whole := strings.Count(
		page, `name="header_remove"`,
	), strings.Count(page, `name="whole_remove"`); lines != 50 || whole != 30 {
		t.Errorf("%d headers with a field, %d without", lines, whole)
	}
}
