-- +goose Up
-- pulse are the times of the newest deaths of a group, up to 16, in milliseconds and 8 bytes each,
-- oldest first; gap is the usual time between two of them, in milliseconds, 0 = not known.
ALTER TABLE groups ADD COLUMN pulse BLOB NOT NULL DEFAULT x'';
ALTER TABLE groups ADD COLUMN gap INTEGER NOT NULL DEFAULT 0;
