-- +goose Up
-- What needs people, by group, without its other counters: every page counts it.
CREATE INDEX counters_needy ON counters (grp, n) WHERE state IN ('dead', 'held') AND n > 0;
-- Deaths stand by the group that died, whatever it is shown as: a split gets its own back. What a
-- group that goes on as another takes along is found by this.
CREATE INDEX deaths_group ON deaths (grp);
