-- +goose Up

-- note_by is who wrote the note of a group. It is empty for a note whose decision is pruned.
ALTER TABLE groups ADD COLUMN note_by TEXT NOT NULL DEFAULT '';
UPDATE groups SET note_by = coalesce((
	SELECT d.by FROM decision_groups k JOIN decisions d ON d.id = k.decision
	WHERE k.grp = groups.id AND json_extract(k.is_now, '$.note') = groups.note AND coalesce(json_extract(k.was, '$.note'), '') <> groups.note
	ORDER BY d.id DESC LIMIT 1), '') WHERE note <> '';
