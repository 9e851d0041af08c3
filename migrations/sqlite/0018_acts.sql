-- +goose Up
-- What people, and dlo by itself, did, names the way, what it was about, of how many it was asked
-- and with how many it was done. NULL and '' = not recorded: it was written before this. The start
-- of an operation has no done: its counts say how far it is.
ALTER TABLE events ADD COLUMN through TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN asked INTEGER;
ALTER TABLE events ADD COLUMN done INTEGER;

CREATE TABLE event_targets (
	event INTEGER NOT NULL REFERENCES events (id),
	kind  TEXT NOT NULL,
	name  TEXT NOT NULL,
	PRIMARY KEY (event, kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_targets_name ON event_targets (kind, name, event);
-- +goose StatementBegin
CREATE TRIGGER event_targets_keep BEFORE DELETE ON event_targets BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER event_targets_stay BEFORE UPDATE ON event_targets BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
-- +goose StatementEnd
INSERT INTO event_targets (event, kind, name) SELECT id, 'operation', 'O-' || operation FROM events WHERE letter IS NULL AND operation IS NOT NULL;
INSERT INTO event_targets (event, kind, name) SELECT id, 'group', 'G-' || grp FROM events WHERE grp IS NOT NULL;
INSERT INTO event_targets (event, kind, name) SELECT id, 'deploy', detail FROM events WHERE letter IS NULL AND kind = 'deploy';
-- The history of a group is found by its name among the targets.
DROP INDEX events_group;
-- Whom groups are assigned to.
CREATE INDEX groups_owner ON groups (owner) WHERE owner <> '';
