package web

import (
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/web/view"
)

// TestEveryPageOfTheNavigationHasAPlace checks that the navigation has a link to each page that
// belongs in it. TestEveryPlaceHasItsPage checks the reverse.
func TestEveryPageOfTheNavigationHasAPlace(t *testing.T) {
	t.Parallel()
	pages := (&Web{}).placePages()
	for _, place := range view.Places {
		delete(pages, place.Section)
	}
	for section := range pages {
		t.Errorf("%s: no row of Places in view/shell.go", section)
	}
}

// noForm says why a call that changes something has no form that makes it.
var noForm = map[string]string{
	"POST /letters/import":          "there is no page for it yet",
	"POST /types/match":             "it changes nothing, and there is no page for it yet",
	"POST /deploys":                 "whatever deploys says it",
	"POST /topology/plan":           "it changes nothing; the page Queues has the plans",
	"PATCH /groups/{id}":            "POST /groups/decisions is for one group too",
	"POST /queues/drain":            "there is no page for it yet",
	"POST /queues/drains/{id}/stop": "there is no page for it yet",
	"POST /reload":                  "whoever changes the file has the command line, or a signal",
	"POST /backup":                  "the configuration has a schedule, and the command line asks",
	"POST /annotations":             "consumers say it, in a program or a queue",
}

// TestPagesMakeEveryCall checks that pages have a form for each call that changes something.
func TestPagesMakeEveryCall(t *testing.T) {
	t.Parallel()
	for _, c := range (&Web{}).calls() {
		doc, pages := humachi.New(chi.NewRouter(), huma.DefaultConfig("", "")), chi.NewRouter()
		c.mount(&Web{}, doc, pages)
		for path, item := range doc.OpenAPI().Paths {
			for _, o := range []*huma.Operation{item.Post, item.Patch, item.Delete} {
				if o == nil {
					continue
				}
				name := o.Method + " " + path
				if forms := len(pages.Routes()); (forms > 0) == (noForm[name] != "") {
					t.Errorf("%s has %d forms", name, forms)
				}
			}
		}
	}
}
