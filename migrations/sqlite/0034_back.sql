-- +goose Up
-- back_at is when a group last came back; NULL = never. back_after is the operation after which it
-- was quiet until then; NULL = it came back after it was resolved.
ALTER TABLE groups ADD COLUMN back_at INTEGER;
ALTER TABLE groups ADD COLUMN back_after INTEGER;
UPDATE groups SET back_at = (SELECT max(e.at) FROM event_targets t JOIN events e ON e.id = t.event
	WHERE t.kind = 'group' AND t.name = 'G-' || groups.id AND e.kind = 'regressed') WHERE status = 'regressed';
