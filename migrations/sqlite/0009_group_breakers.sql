-- +goose Up
-- A breaker now applies to one group of a queue; grp 0 = the whole queue. Breakers recorded by an
-- older version apply to the whole queue.
CREATE TABLE breakers_by_group (
	origin INTEGER NOT NULL REFERENCES origins (id),
	grp    INTEGER NOT NULL DEFAULT 0,
	state  TEXT NOT NULL,
	why    TEXT NOT NULL,
	since  INTEGER NOT NULL,
	until  INTEGER,
	wait   INTEGER NOT NULL,
	PRIMARY KEY (origin, grp)
) STRICT, WITHOUT ROWID;
INSERT INTO breakers_by_group SELECT origin, 0, state, why, since, until, wait FROM breakers;
DROP TABLE breakers;
ALTER TABLE breakers_by_group RENAME TO breakers;
