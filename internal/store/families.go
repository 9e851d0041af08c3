package store

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// families lists the groups that are merged into other groups. A head is a group into which others
// are merged.
type families struct {
	loading sync.Mutex // held during a load, so that an older result never replaces a newer one
	mu      sync.RWMutex
	members map[int64][]int64 // head -> groups merged into it
	heads   map[int64]int64   // group -> the group into which it is merged
}

func (f *families) load(ctx context.Context, db reader) error {
	f.loading.Lock()
	defer f.loading.Unlock()
	// every family is loaded, even if the request that merges groups has a narrower scope
	ctx = deadletter.Within(ctx, deadletter.Scope{})
	rows, err := db.QueryContext(ctx, `SELECT head, id FROM groups WHERE head IS NOT NULL ORDER BY id`)
	if err != nil {
		return err
	}
	members, heads := map[int64][]int64{}, map[int64]int64{}
	if err := scan(rows, func() error {
		var head, id int64
		err := rows.Scan(&head, &id)
		members[head], heads[id] = append(members[head], id), head
		return err
	}); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members, f.heads = members, heads
	return nil
}

// membersOf returns a group and all groups merged into it.
func (f *families) membersOf(id int64) []int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return append([]int64{id}, f.members[id]...)
}

// headOf returns the group into which a group is merged, or the group itself.
func (f *families) headOf(id int64) deadletter.GroupID {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return deadletter.GroupID(cmp.Or(f.heads[id], id))
}

// family returns a group and all groups merged into it. It leaves out groups outside the scope of
// the request.
func (s *Store) family(ctx context.Context, id int64) ([]int64, error) {
	if deadletter.ScopeOf(ctx).Everywhere() {
		return s.families.membersOf(id), nil
	}
	all, err := values[int64](s.ask(ctx, `SELECT id FROM groups WHERE id = $1 OR head = $1`, id))
	if err != nil {
		return nil, fmt.Errorf("groups merged into %s: %w", deadletter.GroupID(id), err)
	}
	return all, nil
}
