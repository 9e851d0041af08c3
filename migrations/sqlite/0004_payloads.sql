-- Payloads: schemas with their versions, how letters are read, types picked by people, and
-- revisions of letters.

-- +goose Up

-- Versions of descriptor sets. content is a serialised FileDescriptorSet, compressed with zstd. The
-- newest version of a set is the one that became current last. Removed versions are kept but have
-- no effect.
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

-- Types picked by people: for a letter, for a group by its key, or as a binding of queues and
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

-- reading is how the body was read (deadletter.Reading); '' = not yet read by this version. Letters
-- are counted by reading while they have a body.
ALTER TABLE letters ADD COLUMN reading TEXT NOT NULL DEFAULT '';
CREATE TABLE readings (
	origin  INTEGER NOT NULL,
	type    INTEGER NOT NULL,
	reading TEXT NOT NULL,
	n       INTEGER NOT NULL,
	PRIMARY KEY (origin, type, reading)
) STRICT, WITHOUT ROWID;
INSERT INTO readings (origin, type, reading, n) SELECT origin, type, '', count(*) FROM letters WHERE state NOT IN ('received', 'purged') GROUP BY origin, type;

-- The types as which letters of a routing key were read. They help to identify the next ones. The
-- number of keys per queue is limited.
CREATE TABLE learned (
	origin INTEGER NOT NULL,
	key    TEXT NOT NULL,
	type   INTEGER NOT NULL,
	n      INTEGER NOT NULL,
	PRIMARY KEY (origin, key, type)
) STRICT, WITHOUT ROWID;

-- Changes that require letters to be read again in the background: why, and which letters (types
-- and origins are JSON lists; letter and grp name one). listed_to is how far the listing has got;
-- listed = 1 when it is complete.
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

-- The values of body fields that queries can use, so that facets can count them. Long values are
-- left out.
CREATE TABLE body_fields (
	letter INTEGER NOT NULL,
	field  TEXT NOT NULL,
	value  TEXT NOT NULL,
	PRIMARY KEY (letter, field)
) STRICT, WITHOUT ROWID;

-- Revisions that people made of letters, instead of the content received from RabbitMQ.
-- letters.revision is the revision that is sent, 0 = as received; attempts.revision is the one that
-- was sent.
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
-- patch is the patch of an edit, RFC 6902.
ALTER TABLE operations ADD COLUMN patch BLOB;
