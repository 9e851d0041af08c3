package drill

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestOnlyWhatADrillHasMadeIsLeft checks that Left does not return names that only look like those
// of a drill.
func TestOnlyWhatADrillHasMadeIsLeft(t *testing.T) {
	t.Parallel()
	api := &recorder{on: func(_, path string, _, into any) error {
		list := into.(*[]struct {
			Name string `json:"name"`
		})
		names := []string{
			"/", "dlo-drill-abcdefghij", "dlo-drill-", "dlo-drill-of-the-team", "dlo-drill-abcdefghijk",
			"my-dlo-drill-abcdefghij",
		}
		if path == "/api/users" {
			names = []string{"guest", "dlo-drill-abcdefghij", "dlo-drill-klmnopqrst"}
		}
		for _, name := range names {
			*list = append(*list, struct {
				Name string `json:"name"`
			}{name})
		}
		return nil
	}}
	left, err := Left(t.Context(), api)
	if d := cmp.Diff([]string{"dlo-drill-abcdefghij", "dlo-drill-klmnopqrst"}, left); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

// TestADrillThatWorksIsNotCleaned checks that Clean does not remove a vhost with connections.
func TestADrillThatWorksIsNotCleaned(t *testing.T) {
	t.Parallel()
	const name = "dlo-drill-abcdefghij"
	working := true
	api := &recorder{on: func(method, _ string, _, into any) error {
		if list, ok := into.(*[]connection); ok {
			*list = []connection{{Name: "of the API", VHost: name, Type: "direct"}}
			if working {
				*list = append(*list, connection{Name: "a", VHost: name, Type: "network"})
			}
		}
		return nil
	}}
	if err := Clean(t.Context(), api, name); !errors.Is(err, deadletter.ErrConflict) || len(api.asked) != 1 {
		t.Errorf("%v, asked %v", err, api.asked)
	}
	working, api.asked = false, nil
	want := []string{
		"GET /api/vhosts/" + name + "/connections", "DELETE /api/vhosts/" + name, "DELETE /api/users/" + name,
	}
	if err := Clean(t.Context(), api, name); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(want, api.asked); d != "" {
		t.Error(d)
	}
}
