package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TrialMark returns the mark for a trial message that has the given id. Nobody can compute this
// mark without the store.
func (s *Store) TrialMark(messageID string) string {
	sum := hmac.New(sha256.New, s.tokenKey)
	io.WriteString(sum, "trial "+messageID) // no token is derived from a text like this one
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// recordTrial records that dlo made a letter for a trial. It does nothing if the parameter
// "isTrial" is false.
func (t *tx) recordTrial(serial int64, isTrial bool) error {
	if !isTrial {
		return nil
	}
	_, err := t.exec(`INSERT INTO trials (letter) VALUES ($1) ON CONFLICT DO NOTHING`, serial)
	return err
}

// Trials returns how many letters dlo has made for trials. It includes letters that were purged.
func (s *Store) Trials(ctx context.Context) (n int, err error) {
	err = s.askRow(ctx, `SELECT count(*) FROM trials`, nil, &n)
	return n, err
}

// ExpireTrials purges the letters of trials that were received before the given time, in whatever
// state they are. A letter that is being sent, or that belongs to an operation, is purged by a
// later call.
func (s *Store) ExpireTrials(ctx context.Context, before time.Time) error {
	var due bool
	if err := s.askRow(ctx, `SELECT EXISTS (SELECT 1 FROM trials WHERE kept = 1
		AND letter < $1)`, []any{deadletter.SerialAt(before)}, &due); err != nil || !due {
		return err
	}
	err := s.tx(ctx, bulk, func(t *tx) error {
		records, err := t.records(`SELECT `+recordColumns+` FROM trials k JOIN letters l ON l.id = k.letter
			WHERE k.kept = 1 AND k.letter < $1
			AND NOT EXISTS (SELECT 1 FROM operation_letters ol WHERE ol.letter = l.id
			AND ol.result IN ('pending', 'released'))`, deadletter.SerialAt(before))
		if err != nil {
			return err
		}
		for _, r := range records {
			to, ok := r.state.On(deadletter.Purging)
			if !ok && r.state != deadletter.StatePurged {
				continue
			}
			if ok {
				if err := t.expire(r, to, "dlo made it for a trial, which is over"); err != nil {
					return err
				}
			}
			if _, err := t.exec(`UPDATE trials SET kept = 0 WHERE letter = $1`, r.id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("letters of trials: %w", err)
	}
	return nil
}
