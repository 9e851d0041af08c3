package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	configurationKey = "configuration"
	changesNamed     = 20 // changes named in one act
)

// Configured compares the configuration with the one passed to the last call, and records the paths
// of the changed keys in the audit. A value that begins with # replaces a value that is not shown.
// The first call records nothing.
func (s *Store) Configured(ctx context.Context, outline map[string]string) error {
	text, _ := json.Marshal(outline) // texts always encode
	return s.tx(ctx, bulk, func(t *tx) error {
		var before string
		err := t.row(`SELECT value FROM meta WHERE key = $1`, []any{configurationKey}, &before)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if before == string(text) {
			return nil
		}
		first := err != nil
		if _, err := t.exec(`INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, configurationKey, string(text)); err != nil || first {
			return err
		}
		was := map[string]string{}
		if err := json.Unmarshal([]byte(before), &was); err != nil {
			return fmt.Errorf("the recorded configuration cannot be read: %w", err)
		}
		changes := changed(was, outline)
		act := deadletter.Once(deadletter.ActConfigured, deadletter.Service.Name, strings.Join(changes[:min(len(changes), changesNamed)], "; "), deadletter.Target{Kind: deadletter.TargetConfiguration})
		if more := len(changes) - changesNamed; more > 0 {
			act.Detail += fmt.Sprintf("; and %d more", more)
		}
		return t.audit(act)
	})
}

// changed lists the differences between two outlines. Each difference is named by the path of its
// key.
func changed(was, now map[string]string) (list []string) {
	paths := maps.Clone(was)
	maps.Copy(paths, now)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		before, had := was[path]
		after, has := now[path]
		name := deadletter.Visible(path)
		hidden := strings.HasPrefix(before, "#") || strings.HasPrefix(after, "#")
		switch {
		case had && has && before == after:
		case !had && hidden:
			list = append(list, name+" added")
		case !had:
			list = append(list, fmt.Sprintf("%s added: %s", name, deadletter.Visible(after)))
		case !has:
			list = append(list, name+" removed")
		case hidden:
			list = append(list, name+" changed")
		default:
			list = append(list, fmt.Sprintf("%s: %s, before %s", name, deadletter.Visible(after), deadletter.Visible(before)))
		}
	}
	return list
}
