package store_test

import (
	"database/sql"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/storetest"
)

// invariants are SQL queries that return a row for each violation. Together they recount every
// number that the store keeps.
var invariants = map[string]string{
	"counters are a recount of the letters": `
		WITH kept AS (SELECT state, origin, type, reason, grp, severity, n FROM counters WHERE n <> 0),
			truth AS (SELECT state, origin, type, reason, grp, severity, count(*) AS n FROM letters
			GROUP BY 1, 2, 3, 4, 5, 6)
		SELECT 'kept', * FROM (SELECT * FROM kept EXCEPT SELECT * FROM truth) UNION ALL SELECT 'truth', * FROM (SELECT *
		FROM truth EXCEPT SELECT * FROM kept)`,
	"rollups are a recount of the letters": `
		WITH kept AS (SELECT bucket, grp, state, n FROM rollups WHERE n <> 0),
			truth AS (SELECT received_at / 900000 AS bucket, grp, state, count(*) AS n FROM letters GROUP BY 1, 2, 3)
		SELECT 'kept', * FROM (SELECT * FROM kept EXCEPT SELECT * FROM truth) UNION ALL SELECT 'truth', * FROM (SELECT *
		FROM truth EXCEPT SELECT * FROM kept)`,
	"readings are a recount of the letters that have a body": `
		WITH kept AS (SELECT origin, type, reading, n FROM readings WHERE n <> 0),
			truth AS (SELECT origin, type, reading, count(*) AS n FROM letters WHERE state NOT IN ('received', 'purged')
			GROUP BY 1, 2, 3)
		SELECT 'kept', * FROM (SELECT * FROM kept EXCEPT SELECT * FROM truth) UNION ALL SELECT 'truth', * FROM (SELECT *
		FROM truth EXCEPT SELECT * FROM kept)`,
	"overdue letters are a recount": `
		WITH kept AS (SELECT grp, n FROM overdue), truth AS (SELECT grp, count(*) AS n FROM letters
		WHERE state = 'scheduled' AND overdue = 1 GROUP BY 1)
		SELECT 'kept', * FROM (SELECT * FROM kept EXCEPT SELECT * FROM truth) UNION ALL SELECT 'truth', * FROM (SELECT *
		FROM truth EXCEPT SELECT * FROM kept)`,
	"operation counts are a recount of their letters": `
		WITH kept AS (SELECT operation, origin, result, n FROM operation_counts WHERE n <> 0),
			truth AS (SELECT operation, origin, result, count(*) AS n FROM operation_letters GROUP BY 1, 2, 3)
		SELECT 'kept', * FROM (SELECT * FROM kept EXCEPT SELECT * FROM truth) UNION ALL SELECT 'truth', * FROM (SELECT *
		FROM truth EXCEPT SELECT * FROM kept)`,
	"the total of an operation is its letters": `
		SELECT id, total FROM operations o WHERE phase <> 'selecting' AND total <> (SELECT count(*)
		FROM operation_letters WHERE operation = o.id)`,
	"an operation that is done has nothing open": `
		SELECT o.id, ol.letter, ol.result FROM operations o JOIN operation_letters ol ON ol.operation = o.id
		WHERE o.state = 'done' AND ol.result IN ('pending', 'released')`,
	"of a cancelled operation only what is on its way is released": `
		SELECT o.id, ol.letter, ol.result, l.state FROM operations o JOIN operation_letters ol ON ol.operation = o.id
		JOIN letters l ON l.id = ol.letter
		WHERE o.state = 'cancelled' AND ol.result = 'released' AND l.state <> 'publishing'`,
	"an operation that is over has nothing that is open or watched": `
		SELECT o.id, o.state, ol.letter, ol.result FROM operations o JOIN operation_letters ol ON ol.operation = o.id
		WHERE o.phase = 'over' AND ol.result IN ('pending', 'released', 'confirmed')`,
	"an operation that is not over has something to do": `
		SELECT o.id, o.state, o.phase FROM operations o WHERE o.phase NOT IN ('over', 'selecting') AND NOT EXISTS
		(SELECT 1 FROM operation_letters ol
			WHERE ol.operation = o.id AND ol.result IN ('pending', 'released', 'confirmed'))`,
	"a letter belongs to one operation at a time": `
		SELECT letter, count(*) FROM operation_letters WHERE result IN ('pending', 'released')
		GROUP BY letter HAVING count(*) > 1`,
	"what an operation sent is watched": `
		SELECT ol.operation, l.id, l.state FROM operation_letters ol JOIN letters l ON l.id = ol.letter
		WHERE ol.result = 'confirmed' AND l.state <> 'requeued'`,
	"search knows every decided letter, or is to be told": `
		SELECT l.id, l.state FROM letters l WHERE l.state NOT IN ('received', 'purged') AND l.id NOT IN (SELECT letter
		FROM unindexed) AND l.id NOT IN (SELECT rowid FROM words)`,
	"nothing of a purged letter is left": `
		SELECT l.id FROM letters l WHERE l.state = 'purged' AND (l.segment IS NOT NULL
		OR l.summary <> '' OR l.error <> ''
			OR l.id IN (SELECT letter FROM unindexed) OR l.id IN (SELECT letter FROM unread) OR l.id IN (SELECT letter
			FROM body_fields) OR EXISTS (SELECT 1 FROM revisions r WHERE r.letter = l.id AND length(r.body) > 0)
			OR l.id IN (SELECT rowid FROM words) OR EXISTS (SELECT 1 FROM attempts a WHERE a.letter = l.id
			AND a.returned IS NOT NULL))`,
	"annotations know how many letters they are the failure of": `
		SELECT a.id, a.letters FROM annotations a WHERE a.letters <> (SELECT count(*) FROM letters l
		WHERE l.annotation = a.id) OR a.uses < a.letters`,
	"the failure of a letter is there, and that of a purged one is not": `
		SELECT l.id, l.state, l.annotation FROM letters l WHERE l.annotation > 0 AND (l.state = 'purged'
		OR l.annotation NOT IN (SELECT id FROM annotations))`,
	"a held letter knows what it was": `
		SELECT id FROM letters WHERE state = 'held' AND held_from NOT IN ('received', 'scheduled', 'dead')`,
	"a letter belongs to an operation while that has released it": `
		SELECT l.id, l.state, l.operation, ol.result, o.state FROM letters l
		LEFT JOIN operations o ON o.id = l.operation LEFT JOIN operation_letters ol ON ol.operation = l.operation
		AND ol.letter = l.id
		WHERE l.operation IS NOT NULL AND (ol.result IS NOT 'released' OR l.state NOT IN ('scheduled', 'publishing')
		OR o.state NOT IN ('running', 'paused', 'stopped') AND l.state <> 'publishing')`,
	"what an operation has released belongs to it": `
		SELECT ol.operation, l.id, l.state, l.operation FROM operation_letters ol JOIN letters l ON l.id = ol.letter
		WHERE ol.result = 'released' AND l.operation IS NOT ol.operation`,
	"every letter is in one state": `
		SELECT id, state FROM letters WHERE state NOT IN ('received',
		'scheduled', 'dead', 'held', 'publishing', 'requeued', 'settled', 'discarded', 'purged')`,
	"due are the scheduled and the watched, and no others": `
		SELECT id, state, due_at FROM letters WHERE (due_at IS NOT NULL) <> (state IN ('scheduled', 'requeued'))`,
	"what is on its way has an open attempt, and a process or a time to be sent again": `
		SELECT l.id, a.outcome, l.epoch, l.resend_at FROM letters l LEFT JOIN attempts a ON a.letter = l.id
		AND a.n = l.tries
		WHERE l.state = 'publishing' AND (a.outcome IS NULL OR a.outcome NOT IN ('open', 'in doubt', 'unsent')
		OR l.epoch IS NULL OR (l.epoch = 0) <> (l.resend_at IS NOT NULL))`,
	"nothing else has one": `
		SELECT id, state FROM letters WHERE state <> 'publishing' AND (epoch IS NOT NULL OR resend_at IS NOT NULL)`,
	"an attempt that is open is of a letter on its way": `
		SELECT a.letter, a.n, l.state FROM attempts a JOIN letters l ON l.id = a.letter WHERE a.outcome = 'open'
		AND (l.state <> 'publishing' OR a.n <> l.tries)`,
	"the newest attempt of a watched letter is confirmed": `
		SELECT l.id, l.state, a.outcome FROM letters l LEFT JOIN attempts a ON a.letter = l.id AND a.n = l.tries
		WHERE l.state IN ('requeued', 'settled') AND a.outcome IS NOT 'confirmed'`,
	"attempts used are those that reached a queue, but for probes that came back": `
		SELECT l.id, l.attempts FROM letters l WHERE l.attempts <> (SELECT count(*) FROM attempts a
		WHERE a.letter = l.id AND (a.outcome = 'confirmed' OR a.outcome = 'came back' AND a.probe = 0))`,
	"only what is scheduled waits in the broker, in the queue that its newest attempt is in": `
		SELECT l.id, l.state, l.waits_in, a.waits_in, a.outcome FROM letters l LEFT JOIN attempts a ON a.letter = l.id
		AND a.n = l.tries
		WHERE l.waits_in IS NOT NULL AND (l.state <> 'scheduled' OR l.operation IS NOT NULL OR a.outcome <> 'confirmed'
		OR a.waits_in IS NOT l.waits_in)`,
	"tokens are used once, but for an attempt that was on its way when the copy was made that the store was restored from": `
		SELECT token FROM attempts WHERE outcome IN ('confirmed', 'in doubt', 'came back')
		AND detail NOT LIKE 'the store was restored from a copy%' GROUP BY token HAVING count(*) > 1`,
	"every letter has its body": `
		SELECT l.id FROM letters l LEFT JOIN ` + storetest.Bodies + ` b ON b.letter = l.id WHERE l.state <> 'purged'
		AND (b.body IS NULL OR length(b.body) <> l.size)`,
	"every letter and every revision has a checksum": `
		SELECT id FROM letters WHERE checksum IS NULL UNION ALL SELECT letter FROM revisions WHERE checksum IS NULL`,
	"a segment has the messages of letters, and knows how many bytes they are": `
		SELECT s.id, s.kept FROM segments s WHERE NOT EXISTS (SELECT 1 FROM letters l WHERE l.segment = s.id)
		OR s.kept > s.size OR s.kept < s.size / 2
		OR s.kept <> (SELECT sum(message_part(s.data, s.size, l.id, 'size')) FROM letters l WHERE l.segment = s.id)`,
	"an inbox has one open window at most": `
		SELECT inbox FROM windows WHERE settled_at IS NULL GROUP BY inbox HAVING count(*) > 1`,
	"a letter that left received has a history": `
		SELECT l.id, l.state FROM letters l WHERE l.state <> 'received' AND NOT EXISTS (SELECT 1 FROM events e
		WHERE e.letter = l.id)`,
}

// breaches checks the invariants of a store and returns the violations.
func breaches(t interface{ Fatal(args ...any) }, db *sql.DB) []string {
	var list []string
	for name, text := range invariants {
		rows, err := db.Query(text)
		if err != nil {
			t.Fatal(name, err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			line := name + ":"
			for i, v := range values {
				line += fmt.Sprintf(" %s=%v", columns[i], *v.(*any))
			}
			list = append(list, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(name, err)
		}
		rows.Close()
	}
	return list
}
