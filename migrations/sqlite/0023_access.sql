-- +goose Up
-- Tokens of the API. The token itself is not stored, only its SHA-256. role is the name of a role.
-- expires_at and used_at are NULL for never. A revoked token is deleted; the audit keeps its name.
CREATE TABLE tokens (
	id         INTEGER PRIMARY KEY,
	name       TEXT    NOT NULL UNIQUE,
	hash       BLOB    NOT NULL UNIQUE,
	role       TEXT    NOT NULL,
	reveal     INTEGER NOT NULL,
	purge      INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	created_by TEXT    NOT NULL,
	expires_at INTEGER,
	used_at    INTEGER
) STRICT;

-- Whether the person who started an operation may see masked data. Before, everybody could.
ALTER TABLE operations ADD COLUMN reveal INTEGER NOT NULL DEFAULT 1;

-- The address from which a person acted; '' is not recorded.
ALTER TABLE events ADD COLUMN address TEXT NOT NULL DEFAULT '';
