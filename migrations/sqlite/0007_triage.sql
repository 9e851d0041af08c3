-- +goose Up
-- Letters that need people, by group, without the group's other counters: every page counts them.
CREATE INDEX counters_needy ON counters (grp, n) WHERE state IN ('dead', 'held') AND n > 0;
-- Deaths are stored by the group in which the letter died, even if that group is shown as another:
-- a split returns them to it. When a group continues as another group, this index finds the deaths
-- that move with it.
CREATE INDEX deaths_group ON deaths (grp);
