-- +goose Up

-- used_from is the address from which a token was last used; '' is not recorded.
ALTER TABLE tokens ADD COLUMN used_from TEXT NOT NULL DEFAULT '';

-- The networks from which a token was used, in the order of their ids. A network is an address of
-- IPv4, or a /64 of IPv6. Only the newest networks of a token are kept.
CREATE TABLE token_networks (
	id      INTEGER PRIMARY KEY,
	token   INTEGER NOT NULL,
	network TEXT    NOT NULL,
	at      INTEGER NOT NULL,
	UNIQUE (token, network)
) STRICT;
