-- +goose Up
-- Letters that dlo made for trials. Of those that are kept the contents are still there.
CREATE TABLE trials (
	letter INTEGER PRIMARY KEY REFERENCES letters (id),
	kept   INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX trials_kept ON trials (letter) WHERE kept = 1;
