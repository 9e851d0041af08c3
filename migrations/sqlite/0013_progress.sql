-- +goose Up
-- progress has a single row with the progress of this file. It is compared with the notes beside
-- the file and in the brokers, which are not part of a copy of the file. claims counts transactions
-- that claimed letters to be sent, and commits counts all transactions. at is the time of the last
-- one.
CREATE TABLE progress (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	claims   INTEGER NOT NULL,
	commits  INTEGER NOT NULL,
	received INTEGER NOT NULL,
	at       INTEGER NOT NULL
) STRICT;
INSERT INTO progress (id, claims, commits, received, at) SELECT 1, 0, 0, count(*), coalesce(max(changed_at), 0) FROM letters;

-- marks lists the brokers that have a mark of this store. claims is the number that the broker last
-- confirmed. unproved = 1 while nothing proves that this file is not an
-- older copy.
CREATE TABLE marks (
	broker   TEXT NOT NULL,
	vhost    TEXT NOT NULL,
	claims   INTEGER NOT NULL,
	unproved INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (broker, vhost)
) STRICT, WITHOUT ROWID;

-- restores lists when this file was found to be a copy, with what was lost since the copy was made
-- and the newest letter it contained. done = 1 once all its letters are held or marked.
CREATE TABLE restores (
	id      INTEGER PRIMARY KEY,
	at      INTEGER NOT NULL,
	since   INTEGER NOT NULL,
	until   INTEGER NOT NULL,
	missing INTEGER NOT NULL,
	newest  INTEGER NOT NULL,
	done    INTEGER NOT NULL DEFAULT 0
) STRICT;

-- suspect 3 = it may have been sent after the copy was made from which this file was restored.
CREATE INDEX letters_restored ON letters (id) WHERE suspect = 3 AND state = 'held';
ALTER TABLE operations ADD COLUMN restored INTEGER NOT NULL DEFAULT 0;
