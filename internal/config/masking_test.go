package config_test

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

// TestNamesThatLookLikeOtherLanguages covers paths with unusual names, which must stay valid.
func TestNamesThatLookLikeOtherLanguages(t *testing.T) {
	t.Parallel()
	c, err := load(
		t, `masking: [{json: $type.a}, {json: "user[email]"}, {json: a.body.b}, {json: body}, {json: a/b}, `+
			`{field: body.a}, {field: a.0.7}, {field: "[acme.v1.x].a"}]`,
	)
	if err != nil || len(c.Masking.JSON) != 5 || len(c.Masking.Fields) != 3 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestPathsOfBindings refuses paths that lead to no member of a JSON body.
func TestPathsOfBindings(t *testing.T) {
	t.Parallel()
	bind := func(path string) (config.Config, error) {
		return load(t, `schemas: {bindings: [{queue: outbox, type: acme.Order, path: `+path+`}]}`)
	}
	if c, err := bind("row.payload"); err != nil || c.Schemas.Bindings[0].Path != "row.payload" {
		t.Errorf("%+v, %v", c.Schemas.Bindings, err)
	}
	for _, path := range []string{"$.row.payload", "body.row.payload", "row.0.payload", "/row/payload", "row..payload", "'row[0]'"} {
		if _, err := bind(path); err == nil || !strings.Contains(err.Error(), "1:62: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestFailureHeaders reads headers of errors, and refuses what is no path into a header.
func TestFailureHeaders(t *testing.T) {
	t.Parallel()
	c, err := load(t, `failure_headers: {type: [x-error.kind], message: [x-why, headers.report.text], origin: [x-from]}`)
	want := deadletter.FailureHeaders{
		Type: []string{"x-error.kind"}, Message: []string{"x-why", "headers.report.text"}, Origin: []string{"x-from"},
	}
	if diff := cmp.Diff(want, c.FailureHeaders); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, path := range []string{"''", "x-error.", "$.a", "'a[0]'", "a..b"} {
		_, err := load(t, `failure_headers: {message: [x-why, `+path+`]}`)
		if err == nil || !strings.Contains(err.Error(), "1:36: ") || !strings.Contains(err.Error(), "such as x-error.reason") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
