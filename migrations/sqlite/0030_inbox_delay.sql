-- +goose Up
ALTER TABLE inboxes ADD COLUMN delay_ms INTEGER NOT NULL DEFAULT 0; -- longest time for which the broker holds back what the last session did not acknowledge
