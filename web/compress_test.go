package web_test

import (
	"compress/gzip"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPagesAreCompressedForOtherMachines checks that pages are compressed, unless they are for this
// machine or show a secret.
func TestPagesAreCompressedForOtherMachines(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := string(h.receive("sms", 1, "x")[0])
	get := func(path, from string) (string, string) {
		r := httptest.NewRequest("GET", path, nil)
		r.RemoteAddr = from
		r.Header.Set("Accept-Encoding", "gzip")
		a := h.do(r)
		return a.Header.Get("Content-Encoding"), a.text
	}
	const near, far = "127.0.0.1:4711", "192.0.2.7:4711"
	how, text := get("/letters?q=state:dead", far)
	page, err := gzip.NewReader(strings.NewReader(text))
	if how != "gzip" || err != nil {
		t.Fatal(how, err, len(text))
	}
	if whole, err := io.ReadAll(page); err != nil || !strings.Contains(string(whole), id) || len(text) > len(whole)/4 {
		t.Errorf("%d bytes of %d, %v", len(text), len(whole), err)
	}
	for _, c := range [][2]string{
		{"/letters?q=state:dead", near},
		{"/letters?q=state:dead", "[::1]:4711"},
		{"/letters?q=state:dead", "@"},
		{"/letters/" + id + "/edit", far},
		{"/letters/" + id + "/copy?reveal=1", far},
		{"/api/v1/letters/" + id, far},
		{"/signin", far},
	} {
		if how, _ := get(c[0], c[1]); how != "" {
			t.Errorf("%s from %s is compressed", c[0], c[1])
		}
	}
}
