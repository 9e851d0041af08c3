-- +goose Up
ALTER TABLE rereads ADD COLUMN hides INTEGER NOT NULL DEFAULT 0; -- 1 = forget what is shown of the letters, as they are listed

-- earlier versions left masked values of JSON in the search index and in lists
INSERT INTO rereads (why, at, hides) SELECT 'this version of dlo', unixepoch() * 1000, 1 WHERE EXISTS (SELECT 1 FROM letters);
