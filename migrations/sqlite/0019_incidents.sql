-- +goose Up
-- Several groups are one incident: they have one told_key. told_began is when that began,
-- told_deploy the deploy after which the group began to need people. heard = machines were told
-- that a group needs people, and not yet that it needs nobody any more.
ALTER TABLE groups ADD COLUMN told_began INTEGER;
ALTER TABLE groups ADD COLUMN told_deploy INTEGER;
ALTER TABLE groups ADD COLUMN heard INTEGER NOT NULL DEFAULT 0;
UPDATE groups SET told_began = told_at, heard = 1 WHERE told > 0;
CREATE INDEX groups_incident ON groups (told_key) WHERE told > 0;
CREATE INDEX groups_began ON groups (told_began) WHERE told > 0;
CREATE INDEX groups_heard ON groups (id) WHERE heard = 1;
-- What machines are told of an operation.
ALTER TABLE notices ADD COLUMN operation INTEGER;
