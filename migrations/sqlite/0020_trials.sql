-- +goose Up
-- Letters that dlo made for trials. kept = 1 while their contents are kept.
CREATE TABLE trials (
	letter INTEGER PRIMARY KEY REFERENCES letters (id),
	kept   INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX trials_kept ON trials (letter) WHERE kept = 1;
