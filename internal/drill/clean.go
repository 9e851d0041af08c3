package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Left returns the names of the vhosts and users that earlier drills left behind. A drill that was
// killed cannot remove the vhost and the user that it created.
func Left(ctx context.Context, api API) ([]string, error) {
	seen := map[string]bool{}
	var names []string
	for _, kind := range []string{"vhosts", "users"} {
		var list []struct {
			Name string `json:"name"`
		}
		err := api.Do(ctx, "GET", "/api/"+kind, nil, &list)
		if errors.Is(err, deadletter.ErrForbidden) { // only administrators may list users
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			if ourNames.MatchString(o.Name) && !seen[o.Name] {
				seen[o.Name] = true
				names = append(names, o.Name)
			}
		}
	}
	return names, nil
}

// folderOf returns the path of the folder of a drill.
func folderOf(name string) string { return filepath.Join(os.TempDir(), name) }

// Clean removes the vhost and the user of a drill. It also removes the folder of the drill, if it
// is on this machine. If a drill still uses the vhost, Clean returns an error.
func Clean(ctx context.Context, api API, name string) error {
	s := &site{fence: &fence{api: api, vhost: name, user: name}, made: true, admin: true}
	list, err := s.Connections(ctx)
	if err != nil && !errors.Is(err, deadletter.ErrNotFound) {
		return err
	}
	if len(list) > 0 {
		return fmt.Errorf(
			"%w: vhost %s has connections: a drill works there, or was killed a moment ago; try again in a minute",
			deadletter.ErrConflict, name,
		)
	}
	return errors.Join(s.remove(ctx), os.RemoveAll(folderOf(name)))
}
