-- +goose Up
-- progress has one row: how far this file has got. It is compared with what is noted beside the
-- file and in the brokers, which no copy of the file carries. claims counts commits that claimed
-- letters to be sent, commits all of them; at is the last one.
CREATE TABLE progress (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	claims   INTEGER NOT NULL,
	commits  INTEGER NOT NULL,
	received INTEGER NOT NULL,
	at       INTEGER NOT NULL
) STRICT;
INSERT INTO progress (id, claims, commits, received, at) SELECT 1, 0, 0, count(*), coalesce(max(changed_at), 0) FROM letters;

-- marks are the brokers that have a mark of this store, by the first name of each: claims is what
-- they last confirmed; unproved = 1 while nothing shows that this file is no older copy.
CREATE TABLE marks (
	broker   TEXT NOT NULL,
	vhost    TEXT NOT NULL,
	claims   INTEGER NOT NULL,
	unproved INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (broker, vhost)
) STRICT, WITHOUT ROWID;

-- restores are the times that this file was found to be a copy: of what was lost since it was made,
-- and the newest letter that it had. done = 1 once all its letters are held or marked.
CREATE TABLE restores (
	id      INTEGER PRIMARY KEY,
	at      INTEGER NOT NULL,
	since   INTEGER NOT NULL,
	until   INTEGER NOT NULL,
	missing INTEGER NOT NULL,
	newest  INTEGER NOT NULL,
	done    INTEGER NOT NULL DEFAULT 0
) STRICT;

-- suspect 3 = it may have been sent since the copy that this file was restored from.
CREATE INDEX letters_restored ON letters (id) WHERE suspect = 3 AND state = 'held';
ALTER TABLE operations ADD COLUMN restored INTEGER NOT NULL DEFAULT 0;
