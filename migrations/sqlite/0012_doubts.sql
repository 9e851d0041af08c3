-- +goose Up
-- suspect is why a letter may be a copy of its twin: 1 = dlo was cut off between ack and record, 2
-- = the broker was restarted, 0 = no doubt, or people have decided. Until this version it became 0
-- when the letter was held. Which letters were being read when dlo died is now noted beside the
-- store.
UPDATE letters SET suspect = CASE WHEN why LIKE '%restart' THEN 2 ELSE 1 END
WHERE state = 'held' AND twin IS NOT NULL AND held_from = 'received' AND why LIKE 'probably the same as its twin%';
UPDATE letters SET suspect = 2 WHERE state = 'received' AND suspect = 1 AND why LIKE '%restart';
CREATE INDEX letters_doubted ON letters (suspect, id) WHERE suspect > 0;
DELETE FROM meta WHERE key IN ('classifying', 'reading anew');
