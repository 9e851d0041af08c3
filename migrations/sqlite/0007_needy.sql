-- +goose Up
-- What needs people, by group, without its other counters: every page counts it.
CREATE INDEX counters_needy ON counters (grp, n) WHERE state IN ('dead', 'held') AND n > 0;
