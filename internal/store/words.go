package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// The search index has one row of tokens for each letter. Tokens consist of lower-case letters and
// digits, so that SQLite's tokenizer splits the row into exactly these tokens:
//
//	w<word>                 a word of the text, folded to lower case
//	u<hex>                  a word that is not ASCII, as the hex of its UTF-8
//	f<field><value>zz       a field with its whole value
//	f<field><value>zy<hash> a field with a long value: its beginning, and the hash of the whole value
//	a, o<id>, t<id>, g<id>  every letter; its origin, type and group, to search within them alone
//	ou<inbox>               the unknown origin of an inbox
//
// The name of a field is hashed, and <field> is the hash as 7 digits of base 36. In values, a to y
// and 0 to 9 stand for themselves. Every other byte becomes z and its two hex digits. Therefore a
// prefix of a value is a prefix of its token.
const (
	maxWord  = 64 // number of bytes of a word that count in a search
	maxValue = 64 // number of bytes of a value that count in a search by prefix
)

const (
	tokenAll    = "a"
	tokenOrigin = 'o'
	tokenType   = 't'
	tokenGroup  = 'g'
)

func numberToken(prefix byte, id int64) string {
	if id < 0 { // the id of an unknown origin is negative
		return string(prefix) + "u" + strconv.FormatInt(-id, 10)
	}
	return string(prefix) + strconv.FormatInt(id, 10)
}

// wordTokens returns the tokens of the words in a text, without duplicates.
func wordTokens(text string) []string {
	var tokens []string
	seen := map[string]bool{}
	for word := range strings.FieldsFuncSeq(
		text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) },
	) {
		if token := wordToken(word); !seen[token] {
			seen[token] = true
			tokens = append(tokens, token)
		}
	}
	return tokens
}

func wordToken(word string) string {
	word = strings.ToLower(word)
	if len(word) > maxWord {
		word = word[:maxWord]
	}
	for i := range len(word) {
		if word[i] >= 0x80 {
			return "u" + hex.EncodeToString([]byte(word))
		}
	}
	return "w" + word
}

// wordPrefix returns a search expression that matches all words with a given prefix. The parameter
// "token" is the token of the prefix.
func wordPrefix(token string) string {
	if token[0] == 'u' {
		return token + "*"
	}
	return "(" + token + "* OR u" + hex.EncodeToString([]byte(token[1:])) + "*)"
}

// fieldToken returns the token of a field that has the given value.
func fieldToken(field, value string) string {
	if len(value) <= maxValue {
		return fieldPrefix(field, value) + "zz"
	}
	whole := sha256.Sum256([]byte(value))
	return fieldPrefix(field, value[:maxValue]) + "zy" + hex.EncodeToString(whole[:8])
}

// fieldPrefix returns the common beginning of several tokens in the search index. These are the
// tokens for the values of the given field that begin with the given prefix. The prefix must have
// at most maxValue bytes.
func fieldPrefix(field, prefix string) string {
	h := fnv.New32a()
	h.Write([]byte(field))
	name := strconv.FormatUint(uint64(h.Sum32()), 36)
	token := append(make([]byte, 0, 8+2*len(prefix)), "f0000000"[:8-len(name)]...)
	token = append(token, name...)
	for i := range len(prefix) {
		if c := prefix[i]; c >= 'a' && c <= 'y' || c >= '0' && c <= '9' {
			token = append(token, c)
		} else {
			token = append(token, 'z', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		}
	}
	return string(token)
}

// Unindexed returns the number of letters that are not indexed yet.
func (s *Store) Unindexed(ctx context.Context) (int, error) {
	var n int
	err := s.askRow(ctx, `SELECT count(*) FROM unindexed`, nil, &n)
	return n, err
}

// NextUnindexed returns up to n letters that are not indexed yet, with their bodies, oldest first.
// Only one indexer may call it at a time.
func (s *Store) NextUnindexed(ctx context.Context, n int) ([]deadletter.Letter, error) {
	serials, err := s.serials(ctx, `SELECT u.letter, `+heldSize+` FROM unindexed u JOIN letters l ON l.id = u.letter
		ORDER BY u.letter LIMIT $1`, n)
	if err != nil || len(serials) == 0 {
		return nil, err
	}
	return s.lettersBySerial(ctx, serials)
}

// maxIndexed is the maximum size in bytes of the text that is indexed in one transaction. It is
// limited because ingest waits for the transaction.
const maxIndexed = 256 << 10

// Index records the texts and fields by which a search finds letters. A letter that has changed
// since NextUnindexed returned it stays unindexed.
func (s *Store) Index(ctx context.Context, list []deadletter.Indexed) error {
	for len(list) > 0 {
		n := 1
		for bytes := len(list[0].Text); n < len(list) && bytes+len(list[n].Text) <= maxIndexed; n++ {
			bytes += len(list[n].Text)
		}
		if err := s.index(ctx, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// index records the texts and fields by which a search finds letters, in a single transaction. It
// skips letters that have changed in the meantime.
func (s *Store) index(ctx context.Context, list []deadletter.Indexed) error {
	err := s.tx(ctx, bulk, func(t *tx) error {
		for i := range list {
			x := &list[i]
			serial, _, _ := x.Letter.Split()
			r, err := t.record(serial)
			if err != nil {
				return err
			}
			if r.state == deadletter.StateReceived || !x.AsOf.IsZero() && r.changedAt != x.AsOf.UnixMilli() {
				continue // the letter has changed in the meantime, so it stays listed or its next verdict lists it
			}
			if _, err := t.exec(`DELETE FROM unindexed WHERE letter = $1`, serial); err != nil {
				return err
			}
			if r.state == deadletter.StatePurged {
				continue
			}
			tokens := append(
				wordTokens(x.Text), tokenAll, numberToken(tokenOrigin, r.origin), numberToken(tokenType, r.typ),
				numberToken(tokenGroup, r.group),
				fieldToken(string(query.Reason), r.reason), fieldToken(string(query.Severity), r.severity),
			)
			for _, f := range x.Fields {
				tokens = append(tokens, fieldToken(f.Name, f.Value))
			}
			if err := t.bodyFields(serial, x.Fields); err != nil {
				return err
			}
			if _, err := t.exec(
				`INSERT OR REPLACE INTO words (rowid, text) VALUES ($1, $2)`, serial, strings.Join(tokens, " "),
			); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index %d letters: %w", len(list), err)
	}
	return nil
}

const maxFacet = 200 // maximum length in bytes of a value that facets count

// bodyFields records the values of the body fields of a letter, so that facets can count them.
func (t *tx) bodyFields(serial int64, fields []deadletter.IndexedField) error {
	if _, err := t.exec(`DELETE FROM body_fields WHERE letter = $1`, serial); err != nil {
		return err
	}
	for _, f := range fields {
		name, ok := strings.CutPrefix(f.Name, string(query.Body)+".")
		if !ok || len(f.Value) > maxFacet {
			continue
		}
		if _, err := t.exec(
			`INSERT OR REPLACE INTO body_fields (letter, field, value) VALUES ($1, $2, $3)`, serial, name, f.Value,
		); err != nil {
			return err
		}
	}
	return nil
}

// Reindex requests that all letters be indexed again if the parameter "version" differs from the
// version of the index. Such a version is a text that describes what is indexed. Its part before
// the first colon describes the masks. Reindex returns the number of letters that are to be indexed
// again.
//
// If the masks have changed, Reindex empties the index immediately, because a search must not
// confirm masked values. A search for words then finds nothing until the letters are indexed again,
// and lists show no body contents until the letters are read again.
func (s *Store) Reindex(ctx context.Context, version string) (int, error) {
	var had string
	if err := s.askRow(ctx, `SELECT coalesce((SELECT value FROM meta
		WHERE key = 'index version'), '')`, nil, &had); err != nil || had == version {
		return 0, err
	}
	was, _, _ := strings.Cut(had, ":")
	is, _, _ := strings.Cut(version, ":")
	masked := had != "" && is != was
	if masked { // the old index is deleted first, because the rest takes a while
		err := s.tx(ctx, bulk, func(t *tx) error {
			if _, err := t.exec(`INSERT INTO words (words) VALUES ('delete-all')`); err != nil {
				return err
			}
			_, err := t.exec(`DELETE FROM body_fields`)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	var last, n int64
	for {
		var found int64
		err := s.tx(ctx, bulk, func(t *tx) error {
			var upper int64
			if err := t.row(`SELECT coalesce(max(id), 0) FROM (SELECT id FROM letters WHERE id > $1 ORDER BY id
				LIMIT 10000)`, []any{last}, &upper); err != nil {
				return err
			}
			if upper == 0 {
				if masked {
					// reading the letters again makes new summaries
					if err := t.reread(deadletter.Reread{Why: "other masks"}); err != nil {
						return err
					}
				}
				_, err := t.exec(`INSERT INTO meta (key, value) VALUES ('index version', $1) ON CONFLICT (key) DO UPDATE
					SET value = excluded.value`, version)
				return err
			}
			if masked { // the summaries in lists were written with the old masks
				if _, err := t.exec(`UPDATE letters SET summary = '' WHERE id > $1 AND id <= $2
					AND summary <> ''`, last, upper); err != nil {
					return err
				}
			}
			done, err := t.exec(`INSERT INTO unindexed (letter) SELECT id FROM letters WHERE id > $1 AND id <= $2
				AND state NOT IN ('received', 'purged') ON CONFLICT DO NOTHING`, last, upper)
			if err != nil {
				return err
			}
			found, _ = done.RowsAffected()
			last = upper
			n += found
			found = 1
			return nil
		})
		if err != nil || found == 0 {
			return int(n), err
		}
	}
}
