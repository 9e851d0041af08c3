-- +goose Up
-- pulse contains the times of a group's newest deaths, up to 16, in milliseconds with 8 bytes each,
-- oldest first. gap is the usual time between two deaths, in milliseconds; 0 = unknown.
ALTER TABLE groups ADD COLUMN pulse BLOB NOT NULL DEFAULT x'';
ALTER TABLE groups ADD COLUMN gap INTEGER NOT NULL DEFAULT 0;
