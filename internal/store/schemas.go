package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/klauspost/compress/zstd"
)

// SchemaVersions passes versions of the descriptor sets in use to the function "visit". Each
// version includes its content. For each set, "visit" gets only the newest versions, at most
// maxVersions of them. The versions come in the order in which they became current. If "visit"
// returns an error, SchemaVersions stops and returns the error.
func (s *Store) SchemaVersions(ctx context.Context, maxVersions int, visit func(deadletter.SchemaVersion) error) error {
	rows, err := s.ask(ctx, `SELECT name, version, source, detail, by, at, current_at, content FROM schema_versions
		WHERE id IN (
			SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY name ORDER BY current_at DESC) AS place
			FROM schema_versions WHERE removed_at IS NULL) WHERE place <= $1)
		ORDER BY current_at, id`, maxVersions)
	if err != nil {
		return fmt.Errorf("schemas: %w", err)
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer r.Close()
	return scan(rows, func() error {
		var v deadletter.SchemaVersion
		var at, currentAt int64
		var content []byte
		if err := rows.Scan(&v.Name, &v.Version, &v.Source, &v.Detail, &v.By, &at, &currentAt, &content); err != nil {
			return err
		}
		v.At, v.CurrentAt = time.UnixMilli(at).UTC(), time.UnixMilli(currentAt).UTC()
		// damaged content is incomplete and therefore not a valid set, so dlo starts without the
		// set
		v.Content, _ = r.DecodeAll(content, nil)
		return visit(v)
	})
}

// AddSchemaVersion stores a version as the newest of its set and fills in its times. A version that
// the set already has becomes the newest, and is not stored twice. Some letters may be decoded
// differently with the new version. In the same transaction, AddSchemaVersion requests that these
// letters be read again. The parameter "detail" is for the audit.
func (s *Store) AddSchemaVersion(
	ctx context.Context, v deadletter.SchemaVersion, detail string, r deadletter.Reread,
) (deadletter.SchemaVersion, error) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return v, err
	}
	defer w.Close()
	content := w.EncodeAll(v.Content, nil)
	err = s.tx(ctx, bulk, func(t *tx) error {
		var at, currentAt int64
		if err := t.row(`INSERT INTO schema_versions (name, version, source, detail, by, at, current_at, content)
			VALUES ($1, $2, $3, $4, $5, $6, max($6, (SELECT coalesce(max(current_at), 0) + 1 FROM schema_versions
			WHERE name = $1)), $7)
			ON CONFLICT (name, version) DO UPDATE SET source = excluded.source,
			detail = excluded.detail, by = excluded.by, current_at = excluded.current_at, removed_at = NULL,
				content = excluded.content
			RETURNING at, current_at`, []any{
			v.Name, v.Version, string(v.Source), v.Detail, v.By, t.now, content,
		}, &at, &currentAt); err != nil {
			return err
		}
		v.At, v.CurrentAt, v.RemovedAt = time.UnixMilli(at).UTC(), time.UnixMilli(currentAt).UTC(), time.Time{}
		kind := deadletter.ActSchemaLoaded
		if v.Source == deadletter.SchemaUpload {
			kind = deadletter.ActSchemaUploaded
		}
		if err := t.audit(deadletter.Once(kind, v.By, detail, deadletter.Target{
			Kind: deadletter.TargetSchema,
			Name: v.Name,
		})); err != nil {
			return err
		}
		return t.reread(r)
	})
	if err != nil {
		return v, fmt.Errorf("keep set %s: %w", deadletter.Visible(v.Name), err)
	}
	return v, nil
}

// RemoveSchema disables a schema set. All versions of the set are kept. If no set with that name is
// in use, RemoveSchema returns ErrNotFound. In the same transaction, RemoveSchema requests that the
// letters which the set decoded be read again.
func (s *Store) RemoveSchema(ctx context.Context, name, by, detail string, r deadletter.Reread) error {
	err := s.tx(ctx, bulk, func(t *tx) error {
		done, err := t.exec(`UPDATE schema_versions SET removed_at = $2 WHERE name = $1
			AND removed_at IS NULL`, name, t.now)
		if err != nil {
			return err
		}
		if n, _ := done.RowsAffected(); n == 0 {
			return deadletter.NoSuch("set of types %s", deadletter.Visible(name))
		}
		if err := t.audit(deadletter.Once(deadletter.ActSchemaRemoved, by, detail, deadletter.Target{
			Kind: deadletter.TargetSchema,
			Name: name,
		})); err != nil {
			return err
		}
		return t.reread(r)
	})
	if err != nil {
		return fmt.Errorf("remove set %s: %w", deadletter.Visible(name), err)
	}
	return nil
}

// RemovedSchemas returns up to 100 versions of disabled sets, without their content. The set that
// was disabled last comes first.
func (s *Store) RemovedSchemas(ctx context.Context) ([]deadletter.SchemaVersion, error) {
	rows, err := s.ask(ctx, `SELECT name, version, source, detail, by, at, current_at, removed_at FROM schema_versions
		WHERE removed_at IS NOT NULL ORDER BY removed_at DESC, current_at DESC, id DESC LIMIT 100`)
	if err != nil {
		return nil, fmt.Errorf("removed schemas: %w", err)
	}
	var list []deadletter.SchemaVersion
	err = scan(rows, func() error {
		var v deadletter.SchemaVersion
		var at, currentAt, removedAt int64
		err := rows.Scan(&v.Name, &v.Version, &v.Source, &v.Detail, &v.By, &at, &currentAt, &removedAt)
		v.At, v.CurrentAt, v.RemovedAt = time.UnixMilli(at).UTC(), time.UnixMilli(
			currentAt,
		).UTC(), time.UnixMilli(removedAt).UTC()
		list = append(list, v)
		return err
	})
	return list, err
}

// TypeCounts returns the number of letters that a schema decodes as each type. It counts only
// letters that still have a body. If the parameter "types" is nil, it returns all types.
func (s *Store) TypeCounts(ctx context.Context, types []string) (map[string]int, error) {
	query, args := `SELECT type, sum(n) FROM readings WHERE `+bySchema+` GROUP BY type`, []any(nil)
	if types != nil {
		list, _ := json.Marshal(types) // json.Marshal cannot fail, because the list contains only texts
		query, args = `SELECT type, sum(n) FROM readings WHERE `+bySchema+` AND type IN (SELECT id FROM types
			WHERE name IN (SELECT value FROM json_each($1))) GROUP BY type`, []any{string(list)}
	}
	rows, err := s.ask(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("letters by type: %w", err)
	}
	counts := map[string]int{}
	err = scan(rows, func() error {
		var typ int64
		var n int
		err := rows.Scan(&typ, &n)
		counts[s.names.typeName(typ)] = n
		return err
	})
	return counts, err
}

const lookedThrough = 5_000 // number of newest letters among which Untyped looks for letters that no schema matches

// Untyped returns up to n letters that no schema matches, with their bodies, oldest first. The
// bodies have at most 32 MiB in total. Untyped looks only at the newest 5,000 letters.
func (s *Store) Untyped(ctx context.Context, n int) ([]deadletter.Letter, error) {
	serials, err := s.serials(ctx, `SELECT l.id, `+heldSize+` FROM (SELECT id, size, revision, reading, state
		FROM letters ORDER BY id DESC LIMIT $1) l
		WHERE reading IN ($2, $3) AND state NOT IN ('received', 'purged')
		LIMIT $4`, lookedThrough, string(deadletter.ReadUnknown), string(deadletter.ReadAmbiguous), n)
	if err != nil || len(serials) == 0 {
		return nil, err
	}
	return s.lettersBySerial(ctx, serials)
}
