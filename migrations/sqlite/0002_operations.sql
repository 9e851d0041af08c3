-- Operations on any query, with pace, watch and undo; search by words; saved views and redirects.

-- +goose Up

-- held_from is the state of a held letter before it was held, so that a release can restore it.
-- target is the queue (a row of origins) that the letter was last sent to instead of its origin.
-- unguarded means that a person released it, so it is decided again without the guards that held
-- it. imported is the state in which an imported letter arrives. unpublishable is why RabbitMQ
-- would reject it as it is.
ALTER TABLE letters ADD COLUMN held_from TEXT NOT NULL DEFAULT '';
ALTER TABLE letters ADD COLUMN target INTEGER;
ALTER TABLE letters ADD COLUMN unguarded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE letters ADD COLUMN imported TEXT NOT NULL DEFAULT '';
ALTER TABLE letters ADD COLUMN unpublishable TEXT NOT NULL DEFAULT '';

ALTER TABLE groups ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE groups ADD COLUMN status TEXT NOT NULL DEFAULT 'open';

ALTER TABLE operations ADD COLUMN phase TEXT NOT NULL DEFAULT 'over';
ALTER TABLE operations ADD COLUMN phase_until INTEGER;
ALTER TABLE operations ADD COLUMN why TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN request BLOB;
ALTER TABLE operations ADD COLUMN query TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN excepted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN sent_at INTEGER;
ALTER TABLE operations ADD COLUMN rate REAL NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN canary INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN canary_wait INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN stop_at REAL NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN max_depth INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN newest INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN hold INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN target TEXT NOT NULL DEFAULT '';
-- The counts when the last canary began. A resumed operation considers only what came after.
ALTER TABLE operations ADD COLUMN base_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN base_taken INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN base_sent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN base_back INTEGER NOT NULL DEFAULT 0;
UPDATE operations SET phase = 'sending', rate = 50, until = created_at WHERE state = 'running';
UPDATE letters SET held_from = CASE WHEN tries > 0 THEN 'scheduled' ELSE 'received' END WHERE state = 'held';
DROP INDEX operations_running;
CREATE INDEX operations_active ON operations (id) WHERE phase <> 'over';

-- The frozen selection until it is laid out in operation_letters: ids in ascending order with their
-- origins, as pairs of varints (delta of the id, origin).
CREATE TABLE operation_selections (
	operation INTEGER NOT NULL REFERENCES operations (id),
	part      INTEGER NOT NULL,
	letters   BLOB NOT NULL,
	PRIMARY KEY (operation, part)
) STRICT, WITHOUT ROWID;

-- The groups of an operation's letters. They distinguish new failures in these groups from letters
-- that came back.
CREATE TABLE operation_groups (
	operation INTEGER NOT NULL REFERENCES operations (id),
	grp       INTEGER NOT NULL REFERENCES groups (id),
	PRIMARY KEY (operation, grp)
) STRICT, WITHOUT ROWID;

-- twice means that the letter may have been sent twice. A letter belongs to one operation at a
-- time, which the index operation_owner enforces.
ALTER TABLE operation_letters ADD COLUMN twice INTEGER NOT NULL DEFAULT 0;
UPDATE operation_letters SET result = 'skipped', reason = 'another operation has it' WHERE result = 'pending' AND EXISTS (SELECT 1 FROM operation_letters other
	WHERE other.letter = operation_letters.letter AND (other.result = 'released' OR other.result = 'pending' AND other.operation < operation_letters.operation));
-- This version did not record the verdict on sent letters with their operation. An operation with
-- watched letters continues to watch them; one with nothing left is done.
UPDATE operation_letters SET result = coalesce((SELECT CASE WHEN l.unverified = 0 THEN 'quiet' END FROM letters l JOIN attempts a ON a.letter = l.id AND a.n = l.tries
	WHERE l.id = operation_letters.letter AND l.state = 'settled' AND a.operation = operation_letters.operation), 'unverified')
	WHERE result = 'confirmed' AND NOT EXISTS (SELECT 1 FROM letters l JOIN attempts a ON a.letter = l.id AND a.n = l.tries
		WHERE l.id = operation_letters.letter AND l.state = 'requeued' AND a.operation = operation_letters.operation);
UPDATE operations SET state = 'running', phase = 'watching', sent_at = coalesce(finished_at, created_at), finished_at = NULL WHERE state IN ('running', 'done')
	AND EXISTS (SELECT 1 FROM operation_letters ol WHERE ol.operation = operations.id AND ol.result = 'confirmed')
	AND NOT EXISTS (SELECT 1 FROM operation_letters ol WHERE ol.operation = operations.id AND ol.result IN ('pending', 'released'));
UPDATE operations SET state = 'done', phase = 'over', finished_at = unixepoch() * 1000 WHERE state = 'running'
	AND NOT EXISTS (SELECT 1 FROM operation_letters ol WHERE ol.operation = operations.id AND ol.result IN ('pending', 'released', 'confirmed'));
UPDATE operations SET phase = 'sending', finished_at = NULL WHERE state = 'cancelled'
	AND EXISTS (SELECT 1 FROM operation_letters ol WHERE ol.operation = operations.id AND ol.result IN ('released', 'confirmed'));
DELETE FROM operation_counts;
INSERT INTO operation_counts (operation, origin, result, n) SELECT operation, origin, result, count(*) FROM operation_letters GROUP BY operation, origin, result;
CREATE UNIQUE INDEX operation_owner ON operation_letters (letter) WHERE result IN ('pending', 'released');
CREATE INDEX operation_twice ON operation_letters (operation, letter) WHERE twice = 1;

CREATE INDEX events_audit ON events (id) WHERE letter IS NULL;

-- Counts by 15 minutes of receipt are kept per state, so that the histogram of a query is exact.
DROP TABLE rollups;
CREATE TABLE rollups (
	bucket INTEGER NOT NULL,
	grp    INTEGER NOT NULL,
	state  TEXT NOT NULL,
	n      INTEGER NOT NULL,
	PRIMARY KEY (bucket, grp, state)
) STRICT, WITHOUT ROWID;
INSERT INTO rollups (bucket, grp, state, n) SELECT received_at / 900000, grp, state, count(*) FROM letters GROUP BY 1, 2, 3;
CREATE INDEX rollups_group ON rollups (grp, bucket);

-- The search index has one row of words per letter, filled in the background from the letters
-- listed in unindexed. A token is a word of the letter's text, or a field with its value (see
-- internal/store/words.go). Nothing else of the text is kept.
CREATE VIRTUAL TABLE words USING fts5 (text, content='', contentless_delete=1, detail=none, tokenize='ascii');
CREATE VIRTUAL TABLE words_vocab USING fts5vocab (words, 'row');
CREATE TABLE unindexed (letter INTEGER PRIMARY KEY) STRICT;
INSERT INTO unindexed (letter) SELECT id FROM letters WHERE state NOT IN ('received', 'purged');

CREATE TABLE views (
	id    INTEGER PRIMARY KEY,
	name  TEXT NOT NULL UNIQUE,
	query TEXT NOT NULL,
	by    TEXT NOT NULL,
	at    INTEGER NOT NULL
) STRICT;

-- Saved redirects: letters of an origin go to another queue on its broker and vhost.
CREATE TABLE overrides (
	id     INTEGER PRIMARY KEY,
	origin INTEGER NOT NULL UNIQUE REFERENCES origins (id),
	target TEXT NOT NULL,
	reason TEXT NOT NULL,
	by     TEXT NOT NULL,
	at     INTEGER NOT NULL
) STRICT;
