package web

import (
	"testing"

	"github.com/deadletteroffice/dlo/web/view"
)

// TestEveryPageOfTheNavigationHasAPlace is the counterpart of TestEveryPlaceHasItsPage. It checks
// that each page has a navigation link.
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
