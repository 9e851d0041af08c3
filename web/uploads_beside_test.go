package web_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestUploadsHinderNoPage checks that a letter can be read while five uploads keep the compiler
// busy for minutes. The uploads must end when their clients disconnect.
func TestUploadsHinderNoPage(t *testing.T) {
	t.Parallel()
	h := open(t, withLibrary)
	id := h.receive("sms", 1, "x")[0]
	file := []byte(
		`syntax = "proto2"; message M { optional string a = 1 [` +
			strings.TrimSuffix(strings.Repeat("deprecated=true,", 60_000), ",") + `]; }`,
	)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var uploads sync.WaitGroup
	var over atomic.Int32
	for range 5 {
		r := httptest.NewRequestWithContext(ctx, "POST", "/api/v1/types?name=x&filename=m.proto", bytes.NewReader(file))
		r.Header.Set("Content-Type", "application/octet-stream")
		uploads.Go(func() {
			h.do(r)
			over.Add(1)
		})
	}
	for range 20 {
		h.get("/letters/"+string(id)).want(t, 200)
		time.Sleep(20 * time.Millisecond) // time for the uploads to start
	}
	if n := over.Load(); n > 0 {
		t.Errorf("the page waited for %d uploads", n)
	}
	leave()
	uploads.Wait()
}
