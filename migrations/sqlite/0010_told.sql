-- +goose Up
-- told_by is when people are notified of a letter that still waits, because its retries should have
-- ended by then. told_rest is the part of that time after its retry is due, in milliseconds.
-- overdue = people were notified; overdue letters are counted by group while they wait. Letters
-- decided by an older version get a day.
ALTER TABLE letters ADD COLUMN told_by INTEGER;
ALTER TABLE letters ADD COLUMN told_rest INTEGER NOT NULL DEFAULT 0;
ALTER TABLE letters ADD COLUMN overdue INTEGER NOT NULL DEFAULT 0;
UPDATE letters SET told_by = due_at + 86400000, told_rest = 86400000 WHERE state = 'scheduled' AND due_at IS NOT NULL;
CREATE INDEX letters_told ON letters (origin, told_by, grp) WHERE state = 'scheduled' AND operation IS NULL AND overdue = 0;
CREATE INDEX letters_overdue ON letters (origin, told_by, grp) WHERE state = 'scheduled' AND overdue = 1;

CREATE TABLE overdue (
	grp INTEGER PRIMARY KEY,
	n   INTEGER NOT NULL
) STRICT;

CREATE INDEX notices_problems ON notices (key, id) WHERE kind = 'problem';

-- When people resumed retries that they had paused. The time before does not make a letter overdue.
-- grp 0 = the whole queue.
CREATE TABLE resumed (
	origin INTEGER NOT NULL REFERENCES origins (id),
	grp    INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	PRIMARY KEY (origin, grp)
) STRICT, WITHOUT ROWID;
