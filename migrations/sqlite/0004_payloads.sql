-- Payloads: schemas with their versions, how letters are read, types that people pick, revisions of
-- letters.

-- +goose Up

-- Versions of descriptor sets. content is a serialised FileDescriptorSet, zstd; the version that
-- was made current last is the newest of its set. Removed ones stay, without effect.
CREATE TABLE schema_versions (
	id         INTEGER PRIMARY KEY,
	name       TEXT NOT NULL,
	version    TEXT NOT NULL,
	source     TEXT NOT NULL,
	detail     TEXT NOT NULL,
	by         TEXT NOT NULL,
	at         INTEGER NOT NULL,
	current_at INTEGER NOT NULL,
	removed_at INTEGER,
	content    BLOB NOT NULL,
	UNIQUE (name, version)
) STRICT;

-- Types that people pick: for a letter, for a group by its key, or as a binding of queues and
-- routing keys (globs).
CREATE TABLE picks (
	id        INTEGER PRIMARY KEY AUTOINCREMENT,
	letter    INTEGER UNIQUE REFERENCES letters (id),
	grp       INTEGER UNIQUE REFERENCES groups (id),
	queue     TEXT,
	key       TEXT,
	type      TEXT NOT NULL,
	reason    TEXT NOT NULL,
	by        TEXT NOT NULL,
	at        INTEGER NOT NULL,
	UNIQUE (queue, key)
) STRICT;

-- reading: how the body was read (deadletter.Reading); '' = not yet, by this version. Letters are
-- counted by it while their body is there.
ALTER TABLE letters ADD COLUMN reading TEXT NOT NULL DEFAULT '';
CREATE TABLE readings (
	origin  INTEGER NOT NULL,
	type    INTEGER NOT NULL,
	reading TEXT NOT NULL,
	n       INTEGER NOT NULL,
	PRIMARY KEY (origin, type, reading)
) STRICT, WITHOUT ROWID;
INSERT INTO readings (origin, type, reading, n) SELECT origin, type, '', count(*) FROM letters WHERE state NOT IN ('received', 'purged') GROUP BY origin, type;

-- What the letters of a routing key were read as, so that the next of them can be told apart. A
-- queue has a bounded number of keys here.
CREATE TABLE learned (
	origin INTEGER NOT NULL,
	key    TEXT NOT NULL,
	type   INTEGER NOT NULL,
	n      INTEGER NOT NULL,
	PRIMARY KEY (origin, key, type)
) STRICT, WITHOUT ROWID;

-- What has changed so that letters are to be read again, in the background: why, and which (JSON
-- lists; letter, grp: one). listed_to goes through the letters, until listed = 1.
CREATE TABLE rereads (
	id        INTEGER PRIMARY KEY,
	why       TEXT NOT NULL,
	types     TEXT,
	origins   TEXT,
	letter    INTEGER,
	grp       INTEGER,
	at        INTEGER NOT NULL,
	listed_to INTEGER NOT NULL DEFAULT 0,
	listed    INTEGER NOT NULL DEFAULT 0,
	total     INTEGER NOT NULL DEFAULT 0,
	changed   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE unread (letter INTEGER PRIMARY KEY) STRICT;
INSERT INTO rereads (why, at) SELECT 'this version of dlo', unixepoch() * 1000 WHERE EXISTS (SELECT 1 FROM letters);

-- The values of the body fields that queries can ask for, so that facets can count them; long ones
-- are not here.
CREATE TABLE body_fields (
	letter INTEGER NOT NULL,
	field  TEXT NOT NULL,
	value  TEXT NOT NULL,
	PRIMARY KEY (letter, field)
) STRICT, WITHOUT ROWID;

-- What people made of a letter instead of what came out of RabbitMQ. revision: the one that is
-- sent, 0 = as received; of an attempt, the one that was.
CREATE TABLE revisions (
	id         INTEGER PRIMARY KEY,
	letter     INTEGER NOT NULL REFERENCES letters (id),
	n          INTEGER NOT NULL,
	properties BLOB NOT NULL,
	body       BLOB NOT NULL,
	changes    TEXT NOT NULL,
	reason     TEXT NOT NULL,
	by         TEXT NOT NULL,
	at         INTEGER NOT NULL,
	operation  INTEGER,
	key        TEXT,
	UNIQUE (letter, n)
) STRICT;
ALTER TABLE letters ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
-- patch: of an edit, RFC 6902.
ALTER TABLE operations ADD COLUMN patch BLOB;
