-- +goose Up

-- places is a JSON object with the globs of queues, vhosts and brokers where the grant of a token
-- or a user holds.
ALTER TABLE tokens ADD COLUMN places TEXT NOT NULL DEFAULT '{}';
ALTER TABLE users ADD COLUMN places TEXT NOT NULL DEFAULT '{}';

-- owner is the person whose view it is; '' = it is for everybody.
CREATE TABLE views_owned (
	id    INTEGER PRIMARY KEY,
	owner TEXT NOT NULL DEFAULT '',
	name  TEXT NOT NULL,
	query TEXT NOT NULL,
	by    TEXT NOT NULL,
	at    INTEGER NOT NULL,
	UNIQUE (owner, name)
) STRICT;
INSERT INTO views_owned (id, name, query, by, at) SELECT id, name, query, by, at FROM views;
DROP TABLE views;
ALTER TABLE views_owned RENAME TO views;
