package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const tokenKey = "token key" // key in meta: 32 random bytes in hex

// loadTokenKey reads the key that tokens are made with. It is made with the store, and goes with
// every copy of it.
func (s *Store) loadTokenKey(ctx context.Context) error {
	fresh := make([]byte, sha256.Size)
	rand.Read(fresh)
	if _, err := s.conn.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`, tokenKey, hex.EncodeToString(fresh)); err != nil {
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

// token is the token of the next attempt of a letter: the first 128 bits of an HMAC of the letter,
// how many attempts of it may have reached a queue, the target, by the first name of its broker,
// and the revision that is sent, if it is edited. A copy of the store that sends the same attempt,
// such as one that was restored, sends it under the same token. So does the attempt after one that
// its queue refused, or that did not leave.
func (t *tx) token(r *record, queue string) (deadletter.Token, error) {
	var arrived int64
	if err := t.row(`SELECT count(*) FROM attempts WHERE letter = $1 AND outcome IN ('confirmed', 'in doubt', 'came back')`, []any{r.id}, &arrived); err != nil {
		return "", err
	}
	sum := hmac.New(sha256.New, t.s.tokenKey)
	field := func(b []byte) {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		sum.Write(b)
	}
	for _, n := range []int64{r.id, r.random, arrived} {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
	}
	at := t.s.names.origin(r.origin)
	if r.target.Valid {
		at = t.s.names.origin(r.target.Int64)
	}
	for _, name := range []string{t.s.known.firstName(at.Broker), at.VHost, queue} {
		field([]byte(name))
	}
	if r.revision > 0 {
		var properties, body []byte
		if err := t.row(`SELECT properties, body FROM revisions WHERE letter = $1 AND n = $2`, []any{r.id, r.revision}, &properties, &body); err != nil {
			return "", fmt.Errorf("revision %d of letter %d: %w", r.revision, r.id, err)
		}
		field(properties)
		field(body)
	}
	return deadletter.TokenFromBytes(sum.Sum(nil)[:16]), nil
}
