-- Times are Unix milliseconds. A letter's id is its serial: the first 60 significant bits of its
-- UUIDv7, so that ids are in order of receipt. Together with column random it gives the whole UUID.
-- Origin, type and group 0 mean "not known yet".

-- +goose Up
CREATE TABLE meta (
	key   TEXT NOT NULL PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE origins (
	id     INTEGER PRIMARY KEY,
	broker TEXT NOT NULL,
	vhost  TEXT NOT NULL,
	queue  TEXT NOT NULL,
	UNIQUE (broker, vhost, queue)
) STRICT;
INSERT INTO origins (id, broker, vhost, queue) VALUES (0, '', '', '');

CREATE TABLE types (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO types (id, name) VALUES (0, '');

-- The dead-letter queues that are drained. marker is a queue with a transient message, whose loss
-- reveals a broker restart.
CREATE TABLE inboxes (
	id           INTEGER PRIMARY KEY,
	broker       TEXT NOT NULL,
	vhost        TEXT NOT NULL,
	queue        TEXT NOT NULL,
	session      INTEGER NOT NULL DEFAULT 0,
	marker       TEXT NOT NULL DEFAULT '',
	restarted_at INTEGER,
	UNIQUE (broker, vhost, queue)
) STRICT;

-- The journal has one row per window. entries contains 58 bytes per delivery, in delivery order:
-- letter, fingerprint, tag, x-delivery-count, redelivered, verdict.
CREATE TABLE windows (
	id           INTEGER PRIMARY KEY,
	inbox        INTEGER NOT NULL REFERENCES inboxes (id),
	session      INTEGER NOT NULL,
	number       INTEGER NOT NULL,
	committed_at INTEGER NOT NULL,
	settled_at   INTEGER,
	letters      INTEGER NOT NULL,
	entries      BLOB NOT NULL
) STRICT;
CREATE INDEX windows_open ON windows (inbox) WHERE settled_at IS NULL;

CREATE TABLE groups (
	id       INTEGER PRIMARY KEY,
	key      BLOB NOT NULL UNIQUE,
	version  INTEGER NOT NULL,
	title    TEXT NOT NULL,
	origin   INTEGER NOT NULL REFERENCES origins (id),
	type     INTEGER NOT NULL REFERENCES types (id),
	reason   TEXT NOT NULL,
	error    TEXT NOT NULL,
	severity TEXT NOT NULL,
	first_at INTEGER NOT NULL,
	last_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE letters (
	id          INTEGER PRIMARY KEY,
	random      INTEGER NOT NULL,
	state       TEXT NOT NULL,
	inbox       INTEGER NOT NULL,
	origin      INTEGER NOT NULL DEFAULT 0,
	type        INTEGER NOT NULL DEFAULT 0,
	reason      TEXT NOT NULL DEFAULT '',
	grp         INTEGER NOT NULL DEFAULT 0,
	severity    TEXT NOT NULL DEFAULT '',
	exchange    TEXT NOT NULL DEFAULT '',
	routing_key TEXT NOT NULL DEFAULT '',
	received_at INTEGER NOT NULL,
	died_at     INTEGER,
	due_at      INTEGER,
	changed_at  INTEGER NOT NULL,
	size        INTEGER NOT NULL,
	attempts    INTEGER NOT NULL DEFAULT 0,
	nacks       INTEGER NOT NULL DEFAULT 0,
	summary     TEXT NOT NULL DEFAULT '',
	error       TEXT NOT NULL DEFAULT '',
	rule        TEXT NOT NULL DEFAULT '',
	why         TEXT NOT NULL DEFAULT '',
	operation   INTEGER,
	tries       INTEGER NOT NULL DEFAULT 0,
	twin        INTEGER,
	suspect     INTEGER NOT NULL DEFAULT 0,
	waits_in    TEXT,
	unverified  INTEGER NOT NULL DEFAULT 0,
	crashes     INTEGER NOT NULL DEFAULT 0,
	epoch       INTEGER,
	lease_until INTEGER
) STRICT;
CREATE INDEX letters_state ON letters (state, id);
CREATE INDEX letters_group ON letters (grp, state, id) WHERE grp > 0;
CREATE INDEX letters_due ON letters (origin, due_at) WHERE state = 'scheduled' AND operation IS NULL AND waits_in IS NULL;
CREATE INDEX letters_released ON letters (due_at, id) WHERE state = 'scheduled' AND operation IS NOT NULL AND waits_in IS NULL;
CREATE INDEX letters_watched ON letters (due_at) WHERE state = 'requeued';

-- The messages as received from RabbitMQ, byte for byte. They never change. properties is the typed
-- encoding of internal/deadletter.
CREATE TABLE bodies (
	letter      INTEGER PRIMARY KEY REFERENCES letters (id),
	exchange    TEXT NOT NULL,
	routing_key TEXT NOT NULL,
	properties  BLOB NOT NULL,
	body        BLOB NOT NULL
) STRICT;

-- One row per publish of a letter back to RabbitMQ, with its outcome. It is also the history of
-- that publish. n counts the tries of a letter. number is the attempt number that its worker sees;
-- it is used again if a nack or a return gave it back. A returning message names its letter, so
-- tokens need no index.
CREATE TABLE attempts (
	letter      INTEGER NOT NULL REFERENCES letters (id),
	n           INTEGER NOT NULL,
	number      INTEGER NOT NULL,
	token       BLOB NOT NULL,
	queue       TEXT NOT NULL,
	operation   INTEGER,
	sends       INTEGER NOT NULL DEFAULT 1,
	outcome     TEXT NOT NULL,
	detail      TEXT NOT NULL DEFAULT '',
	at          INTEGER NOT NULL,
	closed_at   INTEGER,
	depth       INTEGER,
	back_at     INTEGER,
	back_queue  TEXT,
	back_reason TEXT,
	copies      INTEGER NOT NULL DEFAULT 0,
	returned    BLOB,
	PRIMARY KEY (letter, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
	id          INTEGER PRIMARY KEY,
	action      TEXT NOT NULL,
	state       TEXT NOT NULL,
	by          TEXT NOT NULL,
	through     TEXT NOT NULL,
	reason      TEXT NOT NULL,
	key         TEXT,
	created_at  INTEGER NOT NULL,
	finished_at INTEGER,
	total       INTEGER NOT NULL,
	UNIQUE (by, key)
) STRICT;
CREATE INDEX operations_running ON operations (id) WHERE state = 'running';

-- The frozen selection and its results. was and was_due are what the letter returns to if the
-- operation is cancelled before the letter was sent.
CREATE TABLE operation_letters (
	operation INTEGER NOT NULL REFERENCES operations (id),
	letter    INTEGER NOT NULL REFERENCES letters (id),
	origin    INTEGER NOT NULL,
	result    TEXT NOT NULL,
	reason    TEXT NOT NULL DEFAULT '',
	was       TEXT NOT NULL DEFAULT '',
	was_due   INTEGER,
	PRIMARY KEY (operation, letter)
) STRICT, WITHOUT ROWID;
CREATE INDEX operation_results ON operation_letters (operation, result, letter);

CREATE TABLE operation_counts (
	operation INTEGER NOT NULL,
	origin    INTEGER NOT NULL,
	result    TEXT NOT NULL,
	n         INTEGER NOT NULL,
	PRIMARY KEY (operation, origin, result)
) STRICT, WITHOUT ROWID;

-- History and audit in one append-only table. The receipt of a letter is recorded by its row in
-- letters; everything later is here.
CREATE TABLE events (
	id        INTEGER PRIMARY KEY,
	letter    INTEGER,
	operation INTEGER,
	at        INTEGER NOT NULL,
	kind      TEXT NOT NULL,
	actor     TEXT NOT NULL,
	detail    TEXT NOT NULL
) STRICT;
CREATE INDEX events_letter ON events (letter, id) WHERE letter IS NOT NULL;
CREATE INDEX events_operation ON events (operation, id) WHERE operation IS NOT NULL;
-- +goose StatementBegin
CREATE TRIGGER events_keep BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
-- +goose StatementEnd

-- The outbox of notifications. Notices with equal keys count as one until they are sent.
CREATE TABLE notices (
	id       INTEGER PRIMARY KEY,
	key      TEXT NOT NULL,
	kind     TEXT NOT NULL,
	severity TEXT NOT NULL,
	text     TEXT NOT NULL,
	letter   INTEGER,
	grp      INTEGER,
	at       INTEGER NOT NULL,
	sent_at  INTEGER
) STRICT;
CREATE UNIQUE INDEX notices_unsent ON notices (key) WHERE sent_at IS NULL;

-- Numbers of letters, and numbers of letters by 15 minutes of receipt and by their fate (waiting,
-- recovered, dead, discarded). They are updated in the transaction of each change.
CREATE TABLE counters (
	state    TEXT NOT NULL,
	origin   INTEGER NOT NULL,
	type     INTEGER NOT NULL,
	reason   TEXT NOT NULL,
	grp      INTEGER NOT NULL,
	severity TEXT NOT NULL,
	n        INTEGER NOT NULL,
	PRIMARY KEY (state, origin, type, reason, grp, severity)
) STRICT, WITHOUT ROWID;

CREATE TABLE rollups (
	bucket  INTEGER NOT NULL,
	grp     INTEGER NOT NULL,
	outcome TEXT NOT NULL,
	n       INTEGER NOT NULL,
	PRIMARY KEY (bucket, grp, outcome)
) STRICT, WITHOUT ROWID;

