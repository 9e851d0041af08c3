-- Retries by rule: guards that pause them, and letters that wait in the broker.

-- +goose Up

-- prefetch: how many letters of an inbox the broker may have out at once. A quorum queue puts what
-- comes back behind what came back before, so the first window of a session takes them all.
ALTER TABLE inboxes ADD COLUMN prefetch INTEGER NOT NULL DEFAULT 0;

-- What keeps automatic retries back: people pause a queue or a group, the breaker trips for a
-- queue.
CREATE TABLE pauses (
	origin INTEGER NOT NULL REFERENCES origins (id),
	grp    INTEGER NOT NULL DEFAULT 0,
	reason TEXT NOT NULL,
	by     TEXT NOT NULL,
	at     INTEGER NOT NULL,
	PRIMARY KEY (origin, grp)
) STRICT, WITHOUT ROWID;

-- A row is a breaker that is not closed. wait: how long it rests before the next probe,
-- milliseconds.
CREATE TABLE breakers (
	origin INTEGER PRIMARY KEY REFERENCES origins (id),
	state  TEXT NOT NULL,
	why    TEXT NOT NULL,
	since  INTEGER NOT NULL,
	until  INTEGER,
	wait   INTEGER NOT NULL
) STRICT;

-- reset: how many attempts a letter had when a person chose to begin its retries again. fixed: its
-- due time was set by a person.
ALTER TABLE letters ADD COLUMN reset INTEGER NOT NULL DEFAULT 0;
ALTER TABLE letters ADD COLUMN fixed INTEGER NOT NULL DEFAULT 0;
-- probe: an attempt of a breaker's probe, which is given back when it comes back.
ALTER TABLE attempts ADD COLUMN probe INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN reset INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN due_at INTEGER;
-- With group and rule in it, what a pause or a rate keeps back is passed over without a look at
-- each letter.
DROP INDEX letters_due;
CREATE INDEX letters_due ON letters (origin, due_at, grp, rule) WHERE state = 'scheduled' AND operation IS NULL AND waits_in IS NULL;
CREATE INDEX letters_next ON letters (due_at, id) WHERE state = 'scheduled';

-- waiter: which waiter of the broker a letter is to wait behind; '' = it waits in the store. wait:
-- its whole delay there, milliseconds.
ALTER TABLE letters ADD COLUMN waiter TEXT NOT NULL DEFAULT '';
ALTER TABLE letters ADD COLUMN wait INTEGER NOT NULL DEFAULT 0;
CREATE INDEX letters_handed ON letters (origin, waiter, due_at) WHERE state = 'scheduled' AND operation IS NULL AND waits_in IS NULL AND waiter <> '';
CREATE INDEX letters_waiting ON letters (due_at) WHERE state = 'scheduled' AND waits_in IS NOT NULL;
CREATE INDEX letters_lined_up ON letters (due_at) WHERE state = 'scheduled' AND waits_in = 'dlo.wait.ttl';
-- waiter: the attempt was claimed for it, to be back at wait_until. waits_in: the queue of the
-- broker that took it.
ALTER TABLE attempts ADD COLUMN waiter TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN wait_until INTEGER;
ALTER TABLE attempts ADD COLUMN waits_in TEXT NOT NULL DEFAULT '';
