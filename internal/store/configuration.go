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
	changesNamed     = 20 // maximum number of changes that one act names
)

// Configured compares the configuration with the one that was in use before. It records the paths
// of the changed keys in the audit. A value that begins with # stands for a value that must not be
// shown. The first call records nothing in the audit. The function "inUse" reports whether the new
// value of a key is in use. If "inUse" is nil, all values are in use. A key whose new value is not
// in use keeps its recorded value. If the grants change, all sessions end, so that no session gains
// rights. The audit names "by" as the person who did it.
func (s *Store) Configured(
	ctx context.Context, by string, outline map[string]string, inUse func(path string) bool,
) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		was, first, err := configuration(t)
		if err != nil {
			return err
		}
		if inUse != nil {
			outline = maps.Clone(outline)
			maps.DeleteFunc(outline, func(path, _ string) bool { return !inUse(path) })
			for path, value := range was {
				if !inUse(path) {
					outline[path] = value
				}
			}
		}
		text, _ := json.Marshal(outline) // json.Marshal cannot fail, because the values are all texts
		if !first && maps.Equal(was, outline) {
			return nil
		}
		if _, err := t.exec(`INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE
			SET value = excluded.value`, configurationKey, string(text)); err != nil || first {
			return err
		}
		changes := DescribeChanges(was, outline)
		if slices.ContainsFunc(changes, func(c string) bool { return strings.HasPrefix(c, "grants") }) {
			if _, err := t.exec(`DELETE FROM sessions`); err != nil {
				return err
			}
		}
		act := deadletter.Once(
			deadletter.ActConfigured, by,
			strings.Join(changes[:min(len(changes), changesNamed)], "; "), deadletter.Target{
				Kind: deadletter.TargetConfiguration,
			},
		)
		if more := len(changes) - changesNamed; more > 0 {
			act.Detail += fmt.Sprintf("; and %d more", more)
		}
		return t.audit(act)
	})
}

// Configuration returns the outline of the configuration that is in use.
func (s *Store) Configuration(ctx context.Context) (outline map[string]string, err error) {
	err = s.tx(ctx, bulk, func(t *tx) error {
		outline, _, err = configuration(t)
		return err
	})
	return outline, err
}

// configuration reads the recorded outline. If there is none, the result "first" is true.
func configuration(t *tx) (outline map[string]string, first bool, err error) {
	var text string
	outline = map[string]string{}
	err = t.row(`SELECT value FROM meta WHERE key = $1`, []any{configurationKey}, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return outline, true, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &outline)
	}
	if err != nil {
		return nil, false, fmt.Errorf("the recorded configuration cannot be read: %w", err)
	}
	return outline, false, nil
}

// DescribeChanges compares two outlines of the configuration. An outline maps the path of each key
// to a text. DescribeChanges returns a description of each difference, which begins with the path
// of the changed key.
func DescribeChanges(was, now map[string]string) (list []string) {
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
			list = append(
				list, fmt.Sprintf("%s: %s, before %s", name, deadletter.Visible(after), deadletter.Visible(before)),
			)
		}
	}
	return list
}
