-- +goose Up
-- At most this many letters of the selection were requested; 0 = all.
ALTER TABLE operations ADD COLUMN first INTEGER NOT NULL DEFAULT 0;
