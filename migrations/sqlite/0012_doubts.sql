-- +goose Up
-- suspect says why a letter may be a copy of its twin: 1 = dlo was cut off between ack and record,
-- 2 = the broker was restarted; 0 = nobody doubts it, or people have decided. It was 0 once the
-- letter was held. What was being read when dlo died is noted beside the store now.
UPDATE letters SET suspect = CASE WHEN why LIKE '%restart' THEN 2 ELSE 1 END
WHERE state = 'held' AND twin IS NOT NULL AND held_from = 'received' AND why LIKE 'probably the same as its twin%';
UPDATE letters SET suspect = 2 WHERE state = 'received' AND suspect = 1 AND why LIKE '%restart';
CREATE INDEX letters_doubted ON letters (suspect, id) WHERE suspect > 0;
DELETE FROM meta WHERE key IN ('classifying', 'reading anew');
