-- +goose Up
-- What dlo declared on brokers, and the policies that it set there. sure = 0 while a policy is
-- being set: after a crash, dlo takes that policy back. detail is the policy as JSON.
CREATE TABLE declared (
	id     INTEGER PRIMARY KEY,
	broker TEXT    NOT NULL,
	vhost  TEXT    NOT NULL,
	kind   TEXT    NOT NULL,
	name   TEXT    NOT NULL,
	detail TEXT    NOT NULL,
	sure   INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	by     TEXT    NOT NULL,
	UNIQUE (broker, vhost, kind, name)
) STRICT;
