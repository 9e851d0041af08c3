-- Consumers' reports on the messages that they reject, and the letters that wait for one.

-- +goose Up

-- key is a hash of the most reliable identification of the death (token, message id or body), with
-- broker and vhost. digest is the hash of the whole report, so that a repeated report counts as
-- one. reported_at is the time of the last report. reporter is who reported it, as shown in
-- histories, without masked values. reports is how often it was reported, and uses is for how many
-- deaths it was used. letters is the number of letters whose failure it is. Without any, it is
-- deleted after the window, or when the last of them is purged.
CREATE TABLE annotations (
	id          INTEGER PRIMARY KEY,
	key         INTEGER NOT NULL,
	digest      BLOB NOT NULL,
	broker      TEXT NOT NULL,
	vhost       TEXT NOT NULL,
	token       TEXT NOT NULL,
	message_id  TEXT NOT NULL,
	body        BLOB,
	queue       TEXT NOT NULL,
	exchange    TEXT NOT NULL,
	routing_key TEXT NOT NULL,
	error_type  TEXT NOT NULL,
	message     TEXT NOT NULL,
	stack       TEXT NOT NULL,
	service     TEXT NOT NULL,
	version     TEXT NOT NULL,
	failed_at   INTEGER,
	reporter    TEXT NOT NULL,
	reported_at INTEGER NOT NULL,
	reports     INTEGER NOT NULL DEFAULT 1,
	uses        INTEGER NOT NULL DEFAULT 0,
	letters     INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX annotations_digest ON annotations (digest);
-- Annotations that may become the failure of one more letter. In a flood of one message, most
-- cannot.
CREATE INDEX annotations_usable ON annotations (key, reported_at) WHERE token <> '' OR queue = '' OR uses < reports;
CREATE INDEX annotations_reported ON annotations (reported_at);
CREATE INDEX annotations_loose ON annotations (reported_at) WHERE letters = 0;

-- annotation is the consumer's report on the latest death; 0 = none.
ALTER TABLE letters ADD COLUMN annotation INTEGER NOT NULL DEFAULT 0;

-- Deaths without a known reason, by each key with which an annotation can identify them. slot is a
-- third of the window, so that expired rows can be deleted together.
CREATE TABLE unexplained (
	slot   INTEGER NOT NULL,
	key    INTEGER NOT NULL,
	letter INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	PRIMARY KEY (slot, key, letter)
) STRICT, WITHOUT ROWID;
