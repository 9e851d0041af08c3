package drill

import (
	"context"
	"errors"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Left lists the vhosts and users that earlier drills have left, by their names: one that was
// killed has no time to remove them.
func Left(ctx context.Context, api API) ([]string, error) {
	seen := map[string]bool{}
	var names []string
	for _, kind := range []string{"vhosts", "users"} {
		var list []struct {
			Name string `json:"name"`
		}
		err := api.Do(ctx, "GET", "/api/"+kind, nil, &list)
		if errors.Is(err, deadletter.ErrForbidden) { // only an administrator sees users
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			if ours.MatchString(o.Name) && !seen[o.Name] {
				seen[o.Name] = true
				names = append(names, o.Name)
			}
		}
	}
	return names, nil
}

// Clean removes one of them, unless a drill works there.
func Clean(ctx context.Context, api API, name string) error {
	s := &site{fence: &fence{api: api, vhost: name, user: name}, made: true, admin: true}
	list, err := s.Connections(ctx)
	if err != nil && !errors.Is(err, deadletter.ErrNotFound) {
		return err
	}
	if len(list) > 0 {
		return errors.Join(deadletter.ErrConflict, errors.New("vhost "+name+" has connections: a drill works there"))
	}
	return s.remove(ctx)
}
