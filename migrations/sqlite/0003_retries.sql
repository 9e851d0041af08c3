-- Retries by rule: guards that pause them, and letters that wait in the broker.

-- +goose Up

-- prefetch is the number of letters of an inbox that the broker may have delivered without an ack.
-- A quorum queue puts returned letters behind those returned earlier, so the first window of a
-- session takes them all.
ALTER TABLE inboxes ADD COLUMN prefetch INTEGER NOT NULL DEFAULT 0;

-- Guards that hold back automatic retries: people pause a queue or a group, and the breaker trips
-- for a queue.
CREATE TABLE pauses (
	origin INTEGER NOT NULL REFERENCES origins (id),
	grp    INTEGER NOT NULL DEFAULT 0,
	reason TEXT NOT NULL,
	by     TEXT NOT NULL,
	at     INTEGER NOT NULL,
	PRIMARY KEY (origin, grp)
) STRICT, WITHOUT ROWID;

-- Each row is a breaker that is not closed. wait is how long it rests before the next probe, in
-- milliseconds.
CREATE TABLE breakers (
	origin INTEGER PRIMARY KEY REFERENCES origins (id),
	state  TEXT NOT NULL,
	why    TEXT NOT NULL,
	since  INTEGER NOT NULL,
	until  INTEGER,
	wait   INTEGER NOT NULL
) STRICT;

-- reset is the number of attempts that a letter had when a person restarted its retries. fixed
-- means that a person set its due time.
ALTER TABLE letters ADD COLUMN reset INTEGER NOT NULL DEFAULT 0;
ALTER TABLE letters ADD COLUMN fixed INTEGER NOT NULL DEFAULT 0;
-- probe marks an attempt by a breaker's probe. It is not counted if it comes back.
ALTER TABLE attempts ADD COLUMN probe INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN reset INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN due_at INTEGER;
-- With grp and rule in this index, letters held back by a pause or a rate are skipped without
-- reading each letter.
DROP INDEX letters_due;
CREATE INDEX letters_due ON letters (origin, due_at, grp, rule) WHERE state = 'scheduled' AND operation IS NULL AND waits_in IS NULL;
CREATE INDEX letters_next ON letters (due_at, id) WHERE state = 'scheduled';

-- waiter is the broker waiter that a letter is to wait behind; '' = it waits in the store. wait is
-- its whole delay there, in milliseconds.
ALTER TABLE letters ADD COLUMN waiter TEXT NOT NULL DEFAULT '';
ALTER TABLE letters ADD COLUMN wait INTEGER NOT NULL DEFAULT 0;
CREATE INDEX letters_handed ON letters (origin, waiter, due_at) WHERE state = 'scheduled' AND operation IS NULL AND waits_in IS NULL AND waiter <> '';
CREATE INDEX letters_waiting ON letters (due_at) WHERE state = 'scheduled' AND waits_in IS NOT NULL;
CREATE INDEX letters_lined_up ON letters (due_at) WHERE state = 'scheduled' AND waits_in = 'dlo.wait.ttl';
-- waiter is the broker waiter that the attempt was claimed for, to be back at wait_until. waits_in
-- is the broker's queue that took it.
ALTER TABLE attempts ADD COLUMN waiter TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN wait_until INTEGER;
ALTER TABLE attempts ADD COLUMN waits_in TEXT NOT NULL DEFAULT '';
