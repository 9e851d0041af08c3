-- +goose Up
-- runs records for each queue how many of its newest letters, up to 200, had one type
-- consecutively. Letters that no schema reads are left out.
CREATE TABLE runs (
	origin INTEGER PRIMARY KEY,
	type   INTEGER NOT NULL,
	n      INTEGER NOT NULL
) STRICT;
INSERT INTO runs (origin, type, n) SELECT origin, max(type), min(200, sum(n)) FROM readings
	WHERE type > 0 AND n > 0 AND reading IN ('', 'content type', 'envelope', 'type property', 'binding', 'picked', 'matched')
	GROUP BY origin HAVING min(type) = max(type);

-- added contains the fields that a letter has on the wire but its type does not declare.
CREATE TABLE added (
	letter INTEGER NOT NULL,
	number INTEGER NOT NULL,
	wire   TEXT NOT NULL,
	PRIMARY KEY (letter, number)
) STRICT, WITHOUT ROWID;
