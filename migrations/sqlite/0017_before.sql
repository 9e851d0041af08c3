-- +goose Up
-- grp is the group of the letter when the operation took it; 0 = none, or not recorded.
ALTER TABLE operation_letters ADD COLUMN grp INTEGER NOT NULL DEFAULT 0;
