-- +goose Up
-- The member of JSON bodies for which a binding is; '' = the whole body. A queue and a routing key
-- may have a binding for each member.
CREATE TABLE picks_by_path (
	id        INTEGER PRIMARY KEY AUTOINCREMENT,
	letter    INTEGER UNIQUE REFERENCES letters (id),
	grp       INTEGER UNIQUE REFERENCES groups (id),
	queue     TEXT,
	key       TEXT,
	path      TEXT NOT NULL DEFAULT '',
	type      TEXT NOT NULL,
	reason    TEXT NOT NULL,
	by        TEXT NOT NULL,
	at        INTEGER NOT NULL,
	UNIQUE (queue, key, path)
) STRICT;
-- No id is used twice.
INSERT INTO sqlite_sequence (name, seq) SELECT 'picks_by_path', seq FROM sqlite_sequence WHERE name = 'picks';
INSERT INTO picks_by_path (id, letter, grp, queue, key, type, reason, by, at)
SELECT id, letter, grp, queue, key, type, reason, by, at FROM picks;
DROP TABLE picks;
ALTER TABLE picks_by_path RENAME TO picks;
