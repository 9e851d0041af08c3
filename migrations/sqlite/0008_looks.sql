-- +goose Up
-- The number of sessions that looked for an open window and may have given back letters equal to
-- it.
ALTER TABLE windows ADD COLUMN looks INTEGER NOT NULL DEFAULT 0;
