package store

import (
	"context"
	"sync"
)

// families knows which groups are merged into which.
type families struct {
	loading sync.Mutex // held while loading, so that an older result never replaces a newer one
	mu      sync.RWMutex
	members map[int64][]int64 // head -> groups merged into it
}

func (f *families) load(ctx context.Context, db reader) error {
	f.loading.Lock()
	defer f.loading.Unlock()
	rows, err := db.QueryContext(ctx, `SELECT head, id FROM groups WHERE head IS NOT NULL ORDER BY id`)
	if err != nil {
		return err
	}
	members := map[int64][]int64{}
	if err := scan(rows, func() error {
		var head, id int64
		err := rows.Scan(&head, &id)
		members[head] = append(members[head], id)
		return err
	}); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = members
	return nil
}

// of returns a group and all groups merged into it.
func (f *families) of(id int64) []int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return append([]int64{id}, f.members[id]...)
}
