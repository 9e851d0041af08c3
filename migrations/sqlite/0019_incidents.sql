-- +goose Up
-- Groups with one told_key form an incident. told_began is when the incident began. told_deploy is
-- the deploy after which the group began to need people. heard = machines were notified that the
-- group needs people, but not yet that it no longer does.
ALTER TABLE groups ADD COLUMN told_began INTEGER;
ALTER TABLE groups ADD COLUMN told_deploy INTEGER;
ALTER TABLE groups ADD COLUMN heard INTEGER NOT NULL DEFAULT 0;
UPDATE groups SET told_began = told_at, heard = 1 WHERE told > 0;
CREATE INDEX groups_incident ON groups (told_key) WHERE told > 0;
CREATE INDEX groups_began ON groups (told_began) WHERE told > 0;
CREATE INDEX groups_heard ON groups (id) WHERE heard = 1;
-- The operation that a machine notice is about.
ALTER TABLE notices ADD COLUMN operation INTEGER;
