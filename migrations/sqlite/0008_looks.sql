-- +goose Up
-- How many sessions looked for an open window and may have given back letters which equal it.
ALTER TABLE windows ADD COLUMN looks INTEGER NOT NULL DEFAULT 0;
