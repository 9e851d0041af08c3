-- CRC-32C of the contents: of a letter's or a revision's properties and body, and of the names in a
-- row. NULL = not computed yet.

-- +goose Up
ALTER TABLE letters ADD COLUMN checksum INTEGER;
ALTER TABLE revisions ADD COLUMN checksum INTEGER;
ALTER TABLE origins ADD COLUMN checksum INTEGER;
ALTER TABLE inboxes ADD COLUMN checksum INTEGER;
ALTER TABLE types ADD COLUMN checksum INTEGER;
CREATE INDEX letters_unchecked ON letters (id) WHERE checksum IS NULL;
CREATE INDEX revisions_unchecked ON revisions (letter) WHERE checksum IS NULL;
