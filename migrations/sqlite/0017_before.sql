-- +goose Up
-- grp is the group that the letter was in when the operation took it; 0 = it had none, or nobody
-- noted it.
ALTER TABLE operation_letters ADD COLUMN grp INTEGER NOT NULL DEFAULT 0;
