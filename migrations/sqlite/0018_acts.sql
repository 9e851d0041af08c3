-- +goose Up
-- Each act, by a person or by dlo itself, records its way, its targets, the requested number and
-- the completed number. NULL and '' mean not recorded, because the act is older than this version.
-- The start of an operation has no done: the operation's counts show its progress.
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
-- A group's history is found by the group's name among the targets.
DROP INDEX events_group;
-- The people to whom groups are assigned.
CREATE INDEX groups_owner ON groups (owner) WHERE owner <> '';
