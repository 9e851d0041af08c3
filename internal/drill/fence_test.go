package drill

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorder is an API that accepts and records every call.
type recorder struct {
	asked []string
	on    func(method, path string, body, into any) error
}

func (r *recorder) Do(_ context.Context, method, path string, body, into any) error {
	r.asked = append(r.asked, method+" "+path)
	if r.on != nil {
		return r.on(method, path, body, into)
	}
	return nil
}

// TestTheDrillKeepsToItsVHost checks that the drill refuses every call to the management API that
// does not concern the vhost or the user of the drill.
func TestTheDrillKeepsToItsVHost(t *testing.T) {
	t.Parallel()
	const own = "dlo-drill-abcdefghij"
	for request, passes := range map[string]bool{
		"GET /api/whoami":                       true,
		"PUT /api/vhosts/" + own:                true,
		"DELETE /api/vhosts/" + own:             true,
		"PUT /api/users/" + own:                 true,
		"PUT /api/queues/" + own + "/a%2Fb":     true,
		"PUT /api/operator-policies/" + own:     true,
		"DELETE /api/vhosts/%2F":                false,
		"DELETE /api/vhosts/orders":             false,
		"PUT /api/policies/orders/x":            false,
		"PUT /api/policies/%2F/x":               false,
		"PUT /api/policies/" + own + "/../../x": false,
		"PUT /api/policies/" + own + "/%2e%2e":  false,
		"PUT /api/users/guest":                  false,
		"DELETE /api/users/" + own + "x":        false,
		"PUT /api/users/" + own + "/limits":     false,
		"PUT /api/permissions/orders/" + own:    false,
		"DELETE /api/connections/a":             false,
		"PUT /api/parameters/shovel/" + own:     false,
		"PUT /api/global-parameters/x":          false,
		"PUT /api/cluster-name":                 false,
		"POST /api/definitions":                 false,
		"POST /api/definitions/" + own:          false,
		"DELETE /api/whoami":                    false,
		"GET /api/users":                        false,
		"GET /api/queues":                       false,
	} {
		api := &recorder{}
		f := &fence{api: api, vhost: own, user: own}
		method, path, _ := strings.Cut(request, " ")
		err := f.Do(t.Context(), method, path, nil, nil)
		if (err == nil) != passes || len(api.asked) > 0 != passes {
			t.Errorf("%s: %v, asked %v", request, err, api.asked)
		}
	}
}

// TestAVHostOfSomebodyElseStays uses a vhost that the caller of the drill names. The drill must
// delete neither this vhost nor a user that it did not create.
func TestAVHostOfSomebodyElseStays(t *testing.T) {
	t.Parallel()
	api := &recorder{}
	f := &fence{api: api, vhost: "orders", user: "team"}
	for _, path := range []string{"/api/vhosts/orders", "/api/users/team"} {
		for _, method := range []string{"PUT", "DELETE"} {
			if f.Do(t.Context(), method, path, nil, nil) == nil {
				t.Errorf("%s %s", method, path)
			}
		}
	}
	if err := f.Do(t.Context(), "DELETE", "/api/queues/orders/drill.a", nil, nil); err != nil {
		t.Error(err)
	}
}

// TestOnlyConnectionsOfItsVHostAreClosed checks that the drill closes no connection to another
// vhost, even if the management API lists one.
func TestOnlyConnectionsOfItsVHostAreClosed(t *testing.T) {
	t.Parallel()
	api := &recorder{on: func(method, _ string, _, into any) error {
		if list, ok := into.(*[]connection); ok {
			*list = []connection{
				{Name: "1.2.3.4:5 -> 6", VHost: "dlo-drill-abcdefghij"},
				{Name: "foreign", VHost: "orders"},
			}
		}
		return nil
	}}
	s := &site{fence: &fence{api: api, vhost: "dlo-drill-abcdefghij"}}
	n, err := s.cutConnections(t.Context(), "")
	want := []string{"GET /api/vhosts/dlo-drill-abcdefghij/connections", "DELETE /api/connections/1.2.3.4:5%20-%3E%206"}
	if d := cmp.Diff(want, api.asked); n != 1 || err != nil || d != "" {
		t.Errorf("%d closed, %v\n%s", n, err, d)
	}
}
