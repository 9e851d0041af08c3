-- +goose Up
-- at_stake is how many letters the last session of an inbox had in hand for the last time: where it
-- ended before they were stored, its broker deleted them, as their deliveries were used up.
ALTER TABLE inboxes ADD COLUMN at_stake INTEGER NOT NULL DEFAULT 0;
