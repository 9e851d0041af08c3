-- +goose Up
ALTER TABLE windows ADD COLUMN late INTEGER NOT NULL DEFAULT 0; -- until when the queue may deliver its letters again; 0 = not
CREATE INDEX windows_late ON windows (inbox) WHERE late > 0;
