-- +goose Up
-- Local users. key is the name in lower case. hash is the password's argon2id in PHC form, or '' if
-- the user has not chosen a password yet. role is the name of a role.
CREATE TABLE users (
	id           INTEGER PRIMARY KEY,
	name         TEXT    NOT NULL,
	key          TEXT    NOT NULL UNIQUE,
	hash         TEXT    NOT NULL,
	role         TEXT    NOT NULL,
	reveal       INTEGER NOT NULL,
	purge        INTEGER NOT NULL,
	created_at   INTEGER NOT NULL,
	created_by   TEXT    NOT NULL,
	signed_in_at INTEGER
) STRICT;

-- Links with which a user chooses a password, once. hash is the SHA-256 of the code in the link.
CREATE TABLE invitations (
	hash       BLOB    PRIMARY KEY,
	user       INTEGER NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT;

-- Sessions of local users. hash is the SHA-256 of the cookie's value. confirmed_at is when the user
-- last gave the password.
CREATE TABLE sessions (
	hash         BLOB    PRIMARY KEY,
	user         INTEGER NOT NULL,
	created_at   INTEGER NOT NULL,
	used_at      INTEGER NOT NULL,
	confirmed_at INTEGER NOT NULL,
	address      TEXT    NOT NULL,
	agent        TEXT    NOT NULL
) STRICT;
