-- +goose Up

-- A letter on its way belongs to the process of its epoch, however long the broker's answer takes.
-- Epoch 0 is no process: the letter is sent again at resend_at.
ALTER TABLE letters RENAME COLUMN lease_until TO resend_at;
UPDATE letters SET resend_at = NULL WHERE state = 'publishing' AND epoch <> 0;
