package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// maxUnknown limits a search in a restored store. The store does not know the attempts that were
// made after the backup. If a letter comes back with an unknown token, the store computes the
// tokens of at most maxUnknown such attempts, and looks for the unknown token among them.
const maxUnknown = 100

// loadRestores reads whether the file has ever been found to be a copy.
func (s *Store) loadRestores(ctx context.Context) error {
	return s.conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM restores)`).Scan(&s.restored)
}

// recall finds out whether an unknown token belongs to a letter of a store that was restored from a
// copy. The copy does not contain the attempts that were made later, so recall computes the tokens
// that further attempts of the letter would have.
//
// If one of them equals the unknown token, this store made the token, because nobody else has the
// key. In that case, recall records the attempt with this token, and the attempts before it. It
// returns false if the token does not belong to the letter.
func (t *tx) recall(serial, random int64, token deadletter.Token, queue string) (bool, error) {
	if !t.s.restored || queue == "" {
		return false, nil
	}
	r, err := t.record(serial)
	if errors.Is(err, sql.ErrNoRows) || err == nil && r.random != random {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var arrived int64
	if err := t.row(arrivedAttempts+`$1`, []any{serial}, &arrived); err != nil {
		return false, err
	}
	to := t.s.names.origin(r.origin)
	to.Queue = queue
	for revision := range r.revision + 1 {
		sent, err := t.revisionContents(serial, revision)
		if err != nil {
			return false, err
		}
		var tokens []deadletter.Token
		for n := range int64(maxUnknown) {
			tokens = append(tokens, t.s.derive(r, arrived+n, to, sent))
			if tokens[n] == token {
				return true, t.recordRecalled(r, tokens, to, revision)
			}
		}
	}
	return false, nil
}

// recordRecalled records attempts that a restored store does not know. The parameter "tokens" holds
// the tokens of these attempts. The last token belongs to the attempt that comes back now. The
// other attempts came back earlier. If a copy of the letter is still in its queue or is being sent,
// that copy remains the newest attempt.
func (t *tx) recordRecalled(r *record, tokens []deadletter.Token, to place, revision int) error {
	at := r.publishes + 1
	if r.outsideStore() {
		at = r.publishes
		// token of an attempt that may not have reached its queue; it equals the first of the given
		// tokens
		var open []byte
		if err := t.row(`SELECT CASE outcome WHEN 'open' THEN token ELSE x'' END FROM attempts WHERE letter = $1
			AND n = $2`, []any{r.id, r.publishes}, &open); err != nil {
			return err
		}
		tokens = slices.DeleteFunc(
			tokens, func(token deadletter.Token) bool { return bytes.Equal(token.Bytes(), open) },
		)
		if _, err := t.exec(
			`UPDATE attempts SET n = n + $3 WHERE letter = $1 AND n = $2`, r.id, r.publishes, len(tokens),
		); err != nil {
			return err
		}
	}
	for i, token := range tokens {
		outcome := deadletter.OutcomeCameBack
		if i == len(tokens)-1 {
			outcome = deadletter.OutcomeConfirmed
		}
		if _, err := t.exec(`INSERT INTO attempts (letter, n, number, token, queue, outcome, at, revision, detail)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			r.id, at+i, r.attempts+i+1, token.Bytes(), to.Queue, string(outcome), t.now, revision,
			"sent before the store was restored from a copy that does not have it"); err != nil {
			return err
		}
	}
	_, err := t.exec(`UPDATE letters SET tries = tries + $2, attempts = attempts + $2 WHERE id = $1`, r.id, len(tokens))
	return errors.Join(err, t.addEvent(r.id, 0, "recalled", deadletter.Service.Name,
		fmt.Sprintf("%d attempts were sent that the copy of the store does not have; the last came back", len(tokens))))
}
