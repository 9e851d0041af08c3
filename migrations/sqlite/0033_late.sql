-- +goose Up
ALTER TABLE windows ADD COLUMN late INTEGER NOT NULL DEFAULT 0; -- 1 = the queue may hold its letters back
CREATE INDEX windows_late ON windows (inbox) WHERE late = 1;
