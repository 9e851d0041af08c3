package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const tokenKey = "token key" // key in the table meta whose value is 32 random bytes in hex

// loadTokenKey reads the secret key from which tokens are derived. The key is created together with
// the store, and every copy of the store contains it.
func (s *Store) loadTokenKey(ctx context.Context) error {
	fresh := make([]byte, sha256.Size)
	rand.Read(fresh)
	if _, err := s.conn.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES ($1, $2)
		ON CONFLICT DO NOTHING`, tokenKey, hex.EncodeToString(fresh)); err != nil {
		return err
	}
	var text string
	if err := s.conn.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = $1`, tokenKey).Scan(&text); err != nil {
		return err
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != sha256.Size {
		return fmt.Errorf("meta %q has no key of %d bytes", tokenKey, sha256.Size)
	}
	s.tokenKey = key
	return nil
}

// token returns the token for the next attempt of a letter. The token is the first 128 bits of an
// HMAC. The HMAC covers the letter, the target with the first name of its broker, and the number
// "arrived" of attempts that may have reached a queue. If the letter is edited, the HMAC also
// covers the revision. A copy of the store, such as a restored one, therefore sends an equal
// attempt with an equal token. If an attempt was never sent or was rejected by its queue, the next
// attempt also has an equal token.
func (t *tx) token(r *record, arrived int64, queue string) (deadletter.Token, error) {
	if r.suspect == suspectRestored {
		if token, err := t.tokenInDoubt(r, queue); token != "" || err != nil {
			return token, err
		}
	}
	at := t.s.names.origin(r.origin)
	if r.target.Valid {
		at = t.s.names.origin(r.target.Int64)
	}
	at.Queue = queue
	sent, err := t.revisionContents(r.id, r.revision)
	return t.s.derive(r, arrived, at, sent), err
}

// tokenInDoubt is used if a store was restored from a copy. It returns the token of the attempt
// that was being sent to the same queue when the copy was made, because dlo now repeats that
// attempt. If there is no such attempt, tokenInDoubt returns "".
func (t *tx) tokenInDoubt(r *record, queue string) (deadletter.Token, error) {
	var token []byte
	err := t.row(`SELECT token FROM attempts WHERE letter = $1 AND n = $2 - 1 AND outcome = 'in doubt' AND queue = $3
		AND revision = $4`, []any{r.id, r.publishes, queue, r.revision}, &token)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return deadletter.TokenFromBytes(token), err
}

// arrivedAttempts is an SQL query for the number of attempts of a letter that may have reached a
// queue. The ID of the letter follows.
const arrivedAttempts = `SELECT count(DISTINCT token) FROM attempts
	WHERE outcome IN ('confirmed', 'in doubt', 'came back') AND letter = `

// revisionContents returns the properties and the body of a revision. From them and from other
// data, dlo derives the token of an attempt. For a letter that was not edited, revisionContents
// returns nil.
func (t *tx) revisionContents(letter int64, revision int) ([][]byte, error) {
	if revision == 0 {
		return nil, nil
	}
	var properties, body []byte
	if err := t.row(`SELECT properties, body FROM revisions WHERE letter = $1
		AND n = $2`, []any{letter, revision}, &properties, &body); err != nil {
		return nil, fmt.Errorf("revision %d of letter %d: %w", revision, letter, err)
	}
	return [][]byte{properties, body}, nil
}

func (s *Store) derive(r *record, arrived int64, to place, sent [][]byte) deadletter.Token {
	sum := hmac.New(sha256.New, s.tokenKey)
	for _, n := range []int64{r.id, r.random, arrived} {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
	}
	for _, field := range append([][]byte{
		[]byte(s.FirstName(to.Broker)), []byte(to.VHost), []byte(to.Queue),
	}, sent...) {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(field))))
		sum.Write(field)
	}
	return deadletter.TokenFromBytes(sum.Sum(nil)[:16])
}
