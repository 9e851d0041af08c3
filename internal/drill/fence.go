package drill

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// API is the management API of the broker. Its errors wrap ErrNotFound and ErrForbidden of
// internal/deadletter.
type API interface {
	Do(ctx context.Context, method, path string, body, into any) error
}

// fence allows only calls that concern the vhost or the user of the drill. All calls of the drill
// to the management API pass through it.
type fence struct {
	api         API
	vhost, user string

	mu          sync.Mutex
	connections map[string]bool // names of the connections to the vhost
}

// Do sends a call to the management API if the fence allows it. Otherwise it returns an error.
func (f *fence) Do(ctx context.Context, method, path string, body, into any) error {
	if !f.allows(method, path) {
		return fmt.Errorf("the drill keeps to its vhost %s, so it does not %s %s", f.vhost, method, path)
	}
	return f.api.Do(ctx, method, path, body, into)
}

func (f *fence) allows(method, path string) bool {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(strings.TrimPrefix(path, "/api/"), "/")
	for i, part := range parts {
		name, err := url.PathUnescape(part)
		if err != nil || name == "." || name == ".." {
			return false
		}
		parts[i] = name
	}
	switch {
	case len(parts) < 2:
		return method == "GET" && path == "/api/whoami"
	case parts[0] == "users":
		return len(parts) == 2 && parts[1] == f.user && ourNames.MatchString(f.user)
	case parts[0] == "connections":
		return len(parts) == 2 && f.mayClose(parts[1])
	case parts[0] == "vhosts" && method != "GET":
		return len(parts) == 2 && parts[1] == f.vhost && ourNames.MatchString(f.vhost)
	}
	return parts[1] == f.vhost && slices.Contains([]string{
		"vhosts", "queues", "exchanges", "bindings", "policies", "operator-policies", "permissions",
	}, parts[0])
}

func (f *fence) mayClose(connection string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.connections[connection]
}

// connection is an AMQP connection as the management API lists it.
type connection struct {
	Name  string `json:"name"`
	VHost string `json:"vhost"`
	// network or direct; a direct connection is inside the broker, for example one that the API
	// opens for each message
	Type   string `json:"type"`
	Client struct {
		Name string `json:"connection_name"`
	} `json:"client_properties"`
}

// Connections returns the connections of clients to the vhost, and allows the drill to close them.
// It leaves out connections that the management API opened for itself. The API still lists such a
// connection minutes after its end (4.3.6).
func (f *fence) Connections(ctx context.Context) ([]connection, error) {
	var list []connection
	if err := f.Do(ctx, "GET", "/api/vhosts/"+url.PathEscape(f.vhost)+"/connections", nil, &list); err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(c connection) bool { return c.VHost != f.vhost || c.Type == "direct" })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.connections = map[string]bool{}
	for _, c := range list {
		f.connections[c.Name] = true
	}
	return list, nil
}
