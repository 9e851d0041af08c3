-- +goose Up
-- The messages of letters as received from RabbitMQ, byte for byte. data is a zstd frame with the
-- messages of several letters (internal/store/segments.go). size is the number of bytes before
-- compression, kept is how many of them belong to letters that are not purged.
CREATE TABLE segments (
	id   INTEGER PRIMARY KEY,
	size INTEGER NOT NULL,
	kept INTEGER NOT NULL,
	data BLOB NOT NULL
) STRICT;
-- The segment with the message of the letter; NULL = the letter is purged.
ALTER TABLE letters ADD COLUMN segment INTEGER;
