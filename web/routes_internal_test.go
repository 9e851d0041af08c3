package web

import (
	"testing"

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
