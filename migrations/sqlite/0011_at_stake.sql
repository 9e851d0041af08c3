-- +goose Up
-- at_stake is how many letters of the inbox's last session were on their last delivery. If the
-- session ended before they were stored, the broker deleted them, because their deliveries were
-- used up.
ALTER TABLE inboxes ADD COLUMN at_stake INTEGER NOT NULL DEFAULT 0;
