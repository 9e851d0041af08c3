-- What consumers say of the messages that they reject, and the letters that wait for such a word.

-- +goose Up

-- key: a hash of what names the death the surest (token, message id or body) with broker and vhost.
-- digest: of all that is said, so that the same again is one. reported_at: when it was said last.
-- reporter: who said it, as histories have it: without what is masked. reports, uses: how often it
-- was said, and of how many deaths it was taken. letters: how many it is the failure of; with none
-- it goes after the window, or when the last of them is purged.
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
-- What may be the failure of one more letter: in a flood of one message most are not.
CREATE INDEX annotations_usable ON annotations (key, reported_at) WHERE token <> '' OR queue = '' OR uses < reports;
CREATE INDEX annotations_reported ON annotations (reported_at);
CREATE INDEX annotations_loose ON annotations (reported_at) WHERE letters = 0;

-- annotation: what the consumer said of the latest death; 0 = nothing.
ALTER TABLE letters ADD COLUMN annotation INTEGER NOT NULL DEFAULT 0;

-- Deaths that nothing says a reason of, by each key that an annotation may name them by; slot is a
-- third of the window, so that what is over goes at once.
CREATE TABLE unexplained (
	slot   INTEGER NOT NULL,
	key    INTEGER NOT NULL,
	letter INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	PRIMARY KEY (slot, key, letter)
) STRICT, WITHOUT ROWID;
