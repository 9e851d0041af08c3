package web_test

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// TestIfMatch sends changes that are based on an older state of an object. dlo must refuse them,
// and they must have no effect.
func TestIfMatch(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 2, "x")
	send := func(method, path, body, tag string) answer {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if tag != "" {
			r.Header.Set("If-Match", tag)
		}
		return h.do(r)
	}
	tag := func(path string) string {
		tag := h.get(path).want(t, 200).Header.Get("ETag")
		if len(tag) < 3 || tag[0] != '"' {
			t.Fatalf("%s has the tag %s", path, tag)
		}
		return tag
	}
	const group = "/api/v1/groups/G-1"
	first := tag(group)
	send("PATCH", group, `{"note":"one"}`, first).want(t, 200)
	h.late.Add(1e9)
	send("PATCH", group, `{"note":"two"}`, first).want(t, 412, "somebody has decided about G-1 since")
	h.get(group).want(t, 200, `"note":"one"`)
	send("PATCH", group, `{"note":"three"}`, "*").want(t, 200)
	h.late.Add(1e9)
	send("PATCH", group, `{"note":"four"}`, tag(group)).want(t, 200)
	h.late.Add(1e9)
	h.patchJSON(group, `{"note":"five"}`).want(t, 200)
	for _, wrong := range []string{"abc", `W/"1"`, `"`, `"!"`, `"1", "2"`} {
		send("PATCH", group, `{"note":"six"}`, wrong).want(t, 400, "If-Match")
	}
	h.get(group).want(t, 200, `"note":"five"`)
}
