-- +goose Up
-- The letter of a group that the canary of an operation sends first; NULL = none.
ALTER TABLE operation_groups ADD COLUMN canary INTEGER;
