package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	annotatedAtOnce = 100 // annotations stored in one transaction
	// letters to which annotations are joined in one transaction; ingest has to wait for the
	// transaction
	joinedAtOnce = 500
	// annotations per key from which the classifier can choose; any other annotation is joined when
	// the verdict is recorded
	maxCandidates = 8
	slotMillis    = int64(deadletter.AnnotationWindow / 3 / 1e6)
	prunedAtOnce  = 5000 // rows deleted in one transaction
	maxReporter   = 200  // maximum length of a reporter's name, in bytes
)

// Annotate stores consumers' reports on rejected messages. It joins each report to the stored
// letters of the same death, and it lists these letters so that they are read again. If a report is
// repeated within deadletter.AnnotationWindow, it is stored only once. A sender that does not know
// whether a report was stored can therefore repeat it. If a report arrives before its letter,
// Annotations finds it later. Annotate returns ErrUnavailable if the disk is full.
func (s *Store) Annotate(ctx context.Context, list []deadletter.Annotation) (deadletter.Annotated, error) {
	var sum deadletter.Annotated
	if s.space != nil {
		if err := s.space.Room(); err != nil {
			return sum, fmt.Errorf("%w: %w", deadletter.ErrUnavailable, err)
		}
	}
	// row id of the first annotation in the list, if it is stored but may still join further
	// letters; otherwise 0
	open := int64(0)
	for len(list) > 0 {
		var part deadletter.Annotated
		var done int
		var left int64
		err := s.tx(ctx, classify, func(t *tx) error {
			part, done, left = deadletter.Annotated{}, 0, open
			for done < min(len(list), annotatedAtOnce) && part.Joined < joinedAtOnce {
				id, err := left, error(nil)
				if id == 0 {
					if id, err = t.annotation(&list[done], &part); err != nil {
						return err
					}
				}
				room := joinedAtOnce - part.Joined
				n, err := t.joinLetters(id, &list[done], room)
				if err != nil {
					return err
				}
				part.Joined += n
				if left = id; n < room {
					done, left = done+1, 0
				}
			}
			return nil
		})
		if err != nil {
			return sum, fmt.Errorf("store %d annotations: %w", len(list), err)
		}
		list, open = list[done:], left
		sum.New, sum.Again, sum.Joined = sum.New+part.New, sum.Again+part.Again, sum.Joined+part.Joined
	}
	return sum, nil
}

// annotation stores an annotation, or finds it if it is already stored, and returns its row id.
func (t *tx) annotation(a *deadletter.Annotation, sum *deadletter.Annotated) (int64, error) {
	said := *a
	said.Broker, said.By = t.s.annotationBroker(a.Broker), ""
	text, err := json.Marshal(said)
	if err != nil {
		return 0, err
	}
	digest, key := sha256.Sum256(text), keyOf(said.Broker, said.VHost, strongestKey(a))
	var id int64
	err = t.row(`UPDATE annotations SET reports = reports + 1, reported_at = $3 WHERE id = (SELECT id FROM annotations
		WHERE digest = $1 AND reported_at >= $2) RETURNING id`,
		[]any{digest[:], t.windowStart(), t.now}, &id)
	if err == nil {
		sum.Again++
		return id, nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return 0, err
	}
	sum.New++
	err = t.row(`INSERT INTO annotations (key, digest, broker,
		vhost, token, message_id, body, queue, exchange, routing_key,
		error_type, message, stack, service, version, failed_at, reporter, reported_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) RETURNING id`,
		[]any{
			key, digest[:], said.Broker, a.VHost, a.Token, a.MessageID, a.Body, a.Queue, a.Exchange, a.RoutingKey,
			a.ErrorType, a.Message, a.Stack, a.Service, a.Version, millis(a.At),
			deadletter.Cut(deadletter.Visible(cmp.Or(a.By, "its consumer")), maxReporter), t.now,
		}, &id)
	return id, err
}

// windowStart returns the start of the annotation window that ends now.
func (t *tx) windowStart() int64 { return t.now - deadletter.AnnotationWindow.Milliseconds() }

// annotationBroker returns the broker name under which annotations are stored. If several entries
// of the configuration lead to the same broker and vhost, annotationBroker uses the first of these
// entries. It returns the name that this entry had when the store first knew it.
func (s *Store) annotationBroker(broker string) string {
	return s.FirstName(s.entryName(broker))
}

// deathKey is a value, such as a token or a message id, that identifies a death.
type deathKey struct{ kind, value string }

// strongestKey returns the most reliable key of an annotation. The annotation is stored under this
// key.
func strongestKey(a *deadletter.Annotation) deathKey {
	switch {
	case a.Token != "":
		return deathKey{"token", a.Token}
	case a.MessageID != "":
		return deathKey{"message id", a.MessageID}
	}
	return deathKey{"body", string(a.Body)}
}

// keysOf returns hashes of the values that identify a death on a broker and vhost.
func (s *Store) keysOf(broker, vhost string, k deadletter.DeathKeys) []int64 {
	broker = s.annotationBroker(broker)
	var keys []int64
	for _, one := range []deathKey{{"token", k.Token}, {"message id", k.MessageID}, {"body", string(k.Body)}} {
		if one.value != "" {
			keys = append(keys, keyOf(broker, vhost, one))
		}
	}
	return keys
}

func keyOf(broker, vhost string, k deathKey) int64 {
	h := sha256.New()
	for _, part := range []string{broker, vhost, k.kind, k.value} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
}

// joinLetters joins an annotation to the stored letters whose death it describes, in the order in
// which the letters were received. It returns the number of these letters, which is at most "room".
// An annotation that names no queue can join many letters. Any other annotation joins one letter
// for each time it was reported.
func (t *tx) joinLetters(id int64, a *deadletter.Annotation, room int) (int, error) {
	if !a.Many() {
		var free int
		if err := t.row(`SELECT reports - uses FROM annotations WHERE id = $1`, []any{id}, &free); err != nil {
			return 0, err
		}
		room = min(room, free)
	}
	if room <= 0 {
		return 0, nil
	}
	key := keyOf(t.s.annotationBroker(a.Broker), a.VHost, strongestKey(a))
	// A report without a token may describe a death that dlo does not know yet. If dlo sends a
	// letter, or if the letter is in its queue, the consumer may already have rejected it again.
	// The report then describes this next death. Only a report with the token of the last attempt
	// certainly describes the death that dlo knows.
	also := any(nil)
	if a.Token == "" && a.MessageID != "" && a.Body != nil {
		also = keyOf(t.s.annotationBroker(a.Broker), a.VHost, deathKey{"body", string(a.Body)})
	}
	n := 0
	for slot := t.now/slotMillis - 3; slot <= t.now/slotMillis; slot++ {
		letters, err := t.unexplainedLetters(slot, key, also, a, room-n)
		if err != nil {
			return n, err
		}
		for _, letter := range letters {
			if _, err := t.exec(`DELETE FROM unexplained WHERE slot = $1 AND key = $2
				AND letter = $3`, slot, key, letter); err != nil {
				return n, err
			}
			if err := t.explainLate(letter, id); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

var errEnough = errors.New("enough")

// unexplainedLetters returns letters whose error is unknown and which the given annotation may
// explain. The letters must match the annotation and have the given key. If the parameter
// "secondKey" is not nil, they must also have this second key. The parameter "slot" is a period of
// slotMillis, in which the letters must have been stored.
func (t *tx) unexplainedLetters(slot, key int64, secondKey any, a *deadletter.Annotation, room int) ([]int64, error) {
	if room <= 0 {
		return nil, nil
	}
	rows, err := t.query(`SELECT l.id, l.origin, l.exchange,
		l.routing_key, l.state IN ('publishing', 'requeued', 'settled')
		OR l.waits_in IS NOT NULL, coalesce(w.token, x'')
		FROM unexplained u JOIN letters l ON l.id = u.letter LEFT JOIN attempts w ON w.letter = l.id AND w.n =
		(SELECT max(n) FROM attempts WHERE letter = l.id AND back_at IS NOT NULL)
		WHERE u.slot = $1 AND u.key = $2 AND u.at >= $3 AND l.annotation = 0 AND l.error = ''
		AND l.state NOT IN ('received', 'purged')
		AND ($4 IS NULL OR EXISTS (SELECT 1 FROM unexplained b WHERE b.slot = $1 AND b.key = $4
		AND b.letter = u.letter)) ORDER BY u.letter`, slot, key, t.windowStart(), secondKey)
	if err != nil {
		return nil, err
	}
	var found []int64
	err = scan(rows, func() error {
		var letter, origin int64
		var o deadletter.Origin
		var out bool
		var token []byte
		if err := rows.Scan(&letter, &origin, &o.Exchange, &o.RoutingKey, &out, &token); err != nil {
			return err
		}
		o.Queue = t.s.names.origin(origin).Queue
		// the annotation does not describe the letter's latest death, because its token is not that
		// of the last attempt
		other := len(token) > 0 && deadletter.Token(a.Token) != deadletter.TokenFromBytes(token)
		if a.Token == "" && (out || !a.From(o)) || a.Token != "" && other {
			return nil
		}
		if found = append(found, letter); len(found) == room {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return found, err
}

// explainLate records an annotation as the failure of a letter that was classified before the
// annotation arrived. It then adds the letter to the list of letters that must be read again.
func (t *tx) explainLate(letter, annotation int64) error {
	if err := t.setFailure(letter, annotation); err != nil {
		return err
	}
	// If the letter is being read at this moment, that reading does not include the annotation. The
	// new value of changed_at makes that reading out of date, so the letter stays in the list of
	// letters that must be read.
	if _, err := t.exec(`UPDATE letters SET changed_at = max($2, changed_at + 1)
		WHERE id = $1`, letter, t.now); err != nil {
		return err
	}
	if _, err := t.exec(`INSERT INTO rereads (why, at, listed) SELECT $1, $2, 1 WHERE NOT EXISTS (SELECT 1 FROM rereads
		WHERE why = $1)`, becauseAnnotated, t.now); err != nil {
		return err
	}
	if _, err := t.exec(`UPDATE rereads SET total = total + 1 WHERE why = $1`, becauseAnnotated); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO unread (letter) VALUES ($1) ON CONFLICT DO NOTHING`, letter)
	return err
}

const becauseAnnotated = "annotations of consumers"

// setFailure records an annotation as the failure of a letter.
func (t *tx) setFailure(letter, annotation int64) error {
	var by string
	err := t.row(`UPDATE annotations SET uses = uses + 1, letters = letters + 1 WHERE id = $1
		RETURNING reporter`, []any{annotation}, &by)
	if errors.Is(err, sql.ErrNoRows) { // the annotation was deleted at the same moment, because its window had ended
		return nil
	}
	if err != nil {
		return err
	}
	if err := t.removeExplanation(letter); err != nil {
		return err
	}
	if _, err := t.exec(`UPDATE letters SET annotation = $2 WHERE id = $1`, letter, annotation); err != nil {
		return err
	}
	return t.addEvent(letter, 0, "annotated", deadletter.Service.Name, "reported by "+by)
}

// removeExplanation removes the annotation that is recorded as the failure of a letter. It is
// called if the letter died again or is purged.
func (t *tx) removeExplanation(letter int64) error {
	_, err := t.exec(`UPDATE annotations SET letters = letters - 1 WHERE id = (SELECT annotation FROM letters
		WHERE id = $1 AND annotation > 0)`, letter)
	if err != nil {
		return err
	}
	_, err = t.exec(`UPDATE letters SET annotation = 0 WHERE id = $1 AND annotation > 0`, letter)
	return err
}

// forgetAnnotation is called when a letter is erased. It removes the link from the letter to its
// annotation. It also deletes the annotation, unless another letter uses it.
func (t *tx) forgetAnnotation(letter int64) error {
	var annotation int64
	if err := t.row(
		`SELECT annotation FROM letters WHERE id = $1`, []any{letter}, &annotation,
	); err != nil || annotation == 0 {
		return err
	}
	if err := t.removeExplanation(letter); err != nil {
		return err
	}
	_, err := t.exec(`DELETE FROM annotations WHERE id = $1 AND letters = 0`, annotation)
	return err
}

// recordExplanation records which annotation explains a death, or that no annotation does. If an
// annotation arrived while the letter was being classified, recordExplanation also joins this
// annotation to the letter.
func (t *tx) recordExplanation(c *deadletter.Classified, letter int64, recent bool) error {
	if c.Annotation != 0 {
		return t.setFailure(letter, c.Annotation)
	}
	if c.Unexplained.Body == nil {
		return nil
	}
	keys := t.s.keysOf(c.Origin.Broker, c.Origin.VHost, c.Unexplained)
	if recent {
		found, err := t.s.annotationsFor(t.query, letter, keys, c.Origin.Queue, t.windowStart())
		if err != nil {
			return err
		}
		for i := range found {
			if a := &found[i]; a.Fits(c.Unexplained, c.Origin) {
				return t.explainLate(letter, a.ID)
			}
		}
	}
	for _, key := range keys {
		t.wait = append(t.wait, [2]int64{key, letter})
	}
	return nil
}

// annotatedLately reports whether any annotation arrived within the annotation window.
func (t *tx) annotatedLately() (yes bool, err error) {
	err = t.row(recentAnnotations, []any{t.windowStart()}, &yes)
	return yes, err
}

// storeUnexplainedKeys stores the keys of the letters for which recordExplanation found no
// annotation. It uses one statement for all keys. This takes only a third of the time that
// recording the verdicts takes. With one statement per key, it took three times as long as
// recording the verdicts.
func (t *tx) storeUnexplainedKeys() error {
	if len(t.wait) == 0 {
		return nil
	}
	list, _ := json.Marshal(t.wait) // json.Marshal cannot fail, because the list contains only numbers
	// Without the condition "WHERE true", SQLite would read ON CONFLICT as the ON of a join.
	_, err := t.exec(`INSERT INTO unexplained (slot, key, letter, at) SELECT $1, value ->> 0, value ->> 1, $2
		FROM json_each($3) WHERE true ON CONFLICT DO UPDATE SET at = excluded.at`,
		t.now/slotMillis, t.now, string(list))
	return err
}

// Annotations returns the annotations that may describe the deaths of letters that are being
// classified. It sorts the annotations of a letter by their keys, most reliable first, and for each
// key by time, newest first. It returns at most 8 annotations per key. If no annotation arrived
// within the annotation window, the call costs one index lookup.
func (s *Store) Annotations(
	ctx context.Context, letters []deadletter.Letter,
) (map[deadletter.ID][]deadletter.Annotation, error) {
	opens := s.now().Add(-deadletter.AnnotationWindow).UnixMilli()
	var recent bool
	if err := s.askRow(ctx, recentAnnotations, []any{opens}, &recent); err != nil || !recent {
		return nil, err
	}
	found := map[deadletter.ID][]deadletter.Annotation{}
	ask := func(query string, args ...any) (*sql.Rows, error) { return s.ask(ctx, query, args...) }
	for i := range letters {
		l := &letters[i]
		serial, _, _ := l.ID.Split()
		_, origin := deadletter.ReadDeaths(
			l.Arrived.Headers, func(queue string) bool { return queue == l.Inbox || deadletter.NoOrigin(queue) },
		)
		list, err := s.annotationsFor(
			ask, serial, s.keysOf(l.Broker, l.VHost, l.DeathKeys()), cmp.Or(origin.Queue, l.Queue),
			opens,
		)
		if err != nil {
			return nil, fmt.Errorf("annotations: %w", err)
		}
		if len(list) > 0 {
			found[l.ID] = list
		}
	}
	return found, nil
}

const recentAnnotations = `SELECT EXISTS (SELECT 1 FROM annotations WHERE reported_at >= $1)`

// annotationColumns returns the columns that are read for an annotation that may match a death.
func annotationColumns(a *deadletter.Annotation) columns {
	return columns{
		{`id`, &a.ID},
		{`broker`, &a.Broker},
		{`vhost`, &a.VHost},
		{`token`, &a.Token},
		{`message_id`, &a.MessageID},
		{`body`, &a.Body},
		{`queue`, &a.Queue},
		{`exchange`, &a.Exchange},
		{`routing_key`, &a.RoutingKey},
		{`error_type`, &a.ErrorType},
		{`message`, &a.Message},
		{`stack`, &a.Stack},
		{`service`, &a.Service},
		{`version`, &a.Version},
		{`failed_at`, instant{&a.At}},
	}
}

var reportedQuery = `SELECT ` + annotationColumns(&deadletter.Annotation{}).list() +
	` FROM annotations INDEXED BY annotations_usable
	WHERE key = $1 AND reported_at >= $2 AND (token <> '' OR queue = '' OR uses < reports) AND (token <> ''
	OR queue = '' OR queue = $3)
	AND (token <> '' OR reported_at >= coalesce((SELECT max(at) FROM attempts WHERE letter = $4
	AND back_at IS NOT NULL), 0)) ORDER BY reported_at DESC LIMIT $5`

// annotationsFor returns the annotations that have one of the given keys and may describe the death
// of the letter in the given queue. It sorts them by key, most reliable first, and for each key by
// time, newest first. An annotation that was reported before the letter was last sent describes an
// earlier death. annotationsFor returns such an annotation only if it contains the token of the
// last attempt.
func (s *Store) annotationsFor(
	ask func(string, ...any) (*sql.Rows, error), letter int64, keys []int64, queue string, opens int64,
) ([]deadletter.Annotation, error) {
	var list []deadletter.Annotation
	var a deadletter.Annotation
	wanted := annotationColumns(&a)
	for _, key := range keys {
		rows, err := ask(reportedQuery, key, opens, queue, letter, maxCandidates)
		if err != nil {
			return nil, err
		}
		if err := wanted.scan(rows, func() error {
			list = append(list, a)
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// addAnnotations adds the annotations to the letters in a list. The parameter "rowIDs" contains the
// row id of each letter's annotation, in the order of the letters; 0 = none.
func addAnnotations(ctx context.Context, db reader, list []deadletter.Letter, rowIDs []int64) error {
	for i, id := range rowIDs {
		if id == 0 {
			continue
		}
		var a deadletter.Annotation
		var at sql.NullInt64
		err := db.QueryRowContext(ctx, `SELECT error_type, message, stack,
			service, version, queue, exchange, routing_key, failed_at FROM annotations WHERE id = $1`, id).Scan(
			&a.ErrorType, &a.Message, &a.Stack, &a.Service, &a.Version, &a.Queue, &a.Exchange, &a.RoutingKey, &at)
		if errors.Is(err, sql.ErrNoRows) { // the annotation was deleted at the same moment
			continue
		}
		if err != nil {
			return err
		}
		a.At = timeOf(at)
		failure := a.Failure()
		list[i].Annotation = &failure
	}
	return nil
}

// PruneAnnotations deletes rows that have expired, and returns their number. The row of an
// annotation expires if the annotation has joined no letter within the annotation window. The store
// also keeps rows for the letters that wait for an annotation. Such a row expires when the
// annotation window of the letter is over.
func (s *Store) PruneAnnotations(ctx context.Context) (int, error) {
	sum := 0
	opens := s.now().Add(-deadletter.AnnotationWindow).UnixMilli()
	for _, over := range []struct {
		any, prune string
		before     int64
	}{
		{`SELECT EXISTS (SELECT 1 FROM annotations WHERE letters = 0
			AND reported_at < $1)`, `DELETE FROM annotations WHERE id IN (SELECT id FROM annotations WHERE letters = 0
				AND reported_at < $1 LIMIT $2)`, opens},
		{`SELECT EXISTS (SELECT 1 FROM unexplained WHERE slot < $1)`, `DELETE FROM unexplained
			WHERE (slot, key, letter) IN (SELECT slot, key, letter FROM unexplained WHERE slot < $1
			LIMIT $2)`, opens / slotMillis},
	} {
		for {
			var left bool
			if err := s.askRow(ctx, over.any, []any{over.before}, &left); err != nil {
				return sum, fmt.Errorf("prune annotations: %w", err)
			}
			if !left {
				break
			}
			if err := s.tx(ctx, bulk, func(t *tx) error {
				done, err := t.exec(over.prune, over.before, prunedAtOnce)
				if err != nil {
					return err
				}
				n, err := done.RowsAffected()
				sum += int(n)
				return err
			}); err != nil {
				return sum, fmt.Errorf("prune annotations: %w", err)
			}
		}
	}
	return sum, nil
}
