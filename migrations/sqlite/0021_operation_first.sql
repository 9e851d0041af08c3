-- +goose Up
-- Only so many letters of the selection were asked for; 0 = all.
ALTER TABLE operations ADD COLUMN first INTEGER NOT NULL DEFAULT 0;
