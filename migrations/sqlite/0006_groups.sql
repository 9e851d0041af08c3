-- The life of groups, people's decisions about them, and the outbox of notices to people.

-- +goose Up

-- The work on a group. chosen is the severity that a person chose. severity is that value or the
-- severity of the group's newest dead letter. A merged group has a head, which is shown in its
-- place. cause identifies the error regardless of the queue, so that it is recognised in another
-- queue. mixed means that its letters have several types or reasons.
UPDATE groups SET status = 'new';
ALTER TABLE groups ADD COLUMN head INTEGER REFERENCES groups (id);
ALTER TABLE groups ADD COLUMN cause BLOB NOT NULL DEFAULT x'';
ALTER TABLE groups ADD COLUMN mixed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE groups ADD COLUMN chosen TEXT NOT NULL DEFAULT '';
ALTER TABLE groups ADD COLUMN ticket TEXT NOT NULL DEFAULT '';
ALTER TABLE groups ADD COLUMN note TEXT NOT NULL DEFAULT '';
-- changed_at is when a person last changed the group; 0 = never.
ALTER TABLE groups ADD COLUMN changed_at INTEGER NOT NULL DEFAULT 0;
-- deaths is the number of letters that came to need people. snooze_deaths is that number at the
-- time of the snooze.
ALTER TABLE groups ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE groups ADD COLUMN snooze_until INTEGER;
ALTER TABLE groups ADD COLUMN snooze_after INTEGER NOT NULL DEFAULT 0;
ALTER TABLE groups ADD COLUMN snooze_queue INTEGER NOT NULL DEFAULT 0;
ALTER TABLE groups ADD COLUMN snooze_by TEXT NOT NULL DEFAULT '';
ALTER TABLE groups ADD COLUMN snooze_deaths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE groups ADD COLUMN resolved_at INTEGER;
ALTER TABLE groups ADD COLUMN resolved_by TEXT NOT NULL DEFAULT '';
ALTER TABLE groups ADD COLUMN resolved_version TEXT NOT NULL DEFAULT '';
-- told is the number of deaths when people were last notified of the group; 0 = they are not
-- notified of it at the moment. told_key is the key of these notices, and told_channels are their
-- channels. episode counts the times that notices began again.
ALTER TABLE groups ADD COLUMN episode INTEGER NOT NULL DEFAULT 1;
ALTER TABLE groups ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
ALTER TABLE groups ADD COLUMN told_key TEXT NOT NULL DEFAULT '';
ALTER TABLE groups ADD COLUMN told_at INTEGER;
ALTER TABLE groups ADD COLUMN told_severity TEXT NOT NULL DEFAULT '';
ALTER TABLE groups ADD COLUMN told_channels TEXT NOT NULL DEFAULT '';
UPDATE groups SET deaths = (SELECT coalesce(sum(n), 0) FROM counters WHERE grp = groups.id AND state IN ('dead', 'held'));
CREATE INDEX groups_head ON groups (head) WHERE head IS NOT NULL;
CREATE INDEX groups_status ON groups (status) WHERE status IN ('snoozed', 'escalating');
CREATE INDEX groups_told ON groups (id) WHERE told > 0;
CREATE INDEX groups_cause ON groups (cause);
CREATE INDEX groups_mixed ON groups (mixed) WHERE mixed = 1;

-- The history of a group: what people did with it, and its automatic changes.
ALTER TABLE events ADD COLUMN grp INTEGER;
CREATE INDEX events_group ON events (grp, id) WHERE grp IS NOT NULL;

-- A person's decisions about one or more groups, with the groups' earlier state, so that the
-- decision can be undone.
CREATE TABLE decisions (
	id        INTEGER PRIMARY KEY AUTOINCREMENT,
	kind      TEXT NOT NULL,
	detail    TEXT NOT NULL,
	by        TEXT NOT NULL,
	at        INTEGER NOT NULL,
	undone_at INTEGER
) STRICT;
CREATE TABLE decision_groups (
	decision INTEGER NOT NULL REFERENCES decisions (id),
	grp      INTEGER NOT NULL REFERENCES groups (id),
	was      TEXT NOT NULL,
	is_now   TEXT NOT NULL,
	PRIMARY KEY (decision, grp)
) STRICT, WITHOUT ROWID;

CREATE TABLE deploys (
	id      INTEGER PRIMARY KEY,
	at      INTEGER NOT NULL,
	service TEXT NOT NULL,
	version TEXT NOT NULL,
	link    TEXT NOT NULL,
	by      TEXT NOT NULL
) STRICT;
CREATE INDEX deploys_at ON deploys (at);

-- How many letters came to need people, per minute and group. Digests count these.
CREATE TABLE deaths (
	minute INTEGER NOT NULL,
	grp    INTEGER NOT NULL,
	n      INTEGER NOT NULL,
	PRIMARY KEY (minute, grp)
) STRICT, WITHOUT ROWID;
INSERT INTO deaths (minute, grp, n) SELECT bucket * 15, grp, sum(n) FROM rollups WHERE grp > 0 AND state IN ('dead', 'held') GROUP BY 1, 2;
CREATE INDEX counters_group ON counters (grp, state);
CREATE INDEX operation_groups_group ON operation_groups (grp);

-- The outbox. A notice has a delivery for each of its channels. A delivery is due, sent,
-- permanently failed, or void because its subject no longer exists. Deliveries with one subject, a
-- group or a key, are sent in order.
DROP TABLE notices;
CREATE TABLE notices (
	id       INTEGER PRIMARY KEY,
	key      TEXT NOT NULL,
	kind     TEXT NOT NULL,
	severity TEXT NOT NULL,
	text     TEXT NOT NULL,
	letter   INTEGER,
	grp      INTEGER,
	at       INTEGER NOT NULL
) STRICT;
CREATE INDEX notices_key ON notices (key, kind);
CREATE INDEX notices_at ON notices (at);
CREATE INDEX notices_group ON notices (grp, kind) WHERE grp IS NOT NULL;
CREATE TABLE deliveries (
	id      INTEGER PRIMARY KEY,
	notice  INTEGER NOT NULL REFERENCES notices (id),
	channel TEXT NOT NULL,
	subject TEXT NOT NULL,
	state   TEXT NOT NULL,
	due_at  INTEGER NOT NULL,
	tries   INTEGER NOT NULL DEFAULT 0,
	postponed INTEGER NOT NULL DEFAULT 0,
	detail  TEXT NOT NULL DEFAULT '',
	ended_at INTEGER
) STRICT;
CREATE INDEX deliveries_due ON deliveries (channel, due_at, id) WHERE state = 'due';
CREATE INDEX deliveries_subject ON deliveries (channel, subject, id) WHERE state = 'due';
CREATE INDEX deliveries_notice ON deliveries (notice);

-- One digest per local day; content is the digest as JSON.
CREATE TABLE digests (
	day     TEXT NOT NULL PRIMARY KEY,
	notice  INTEGER,
	from_at INTEGER NOT NULL,
	to_at   INTEGER NOT NULL,
	content TEXT NOT NULL,
	at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
