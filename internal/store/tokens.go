package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	// tokenUse limits how often the store writes about a token. At least one minute passes between
	// two records of its use, and between two records that the token came from a new network.
	tokenUse = time.Minute

	// maxNetworks is the maximum number of networks that the store remembers for a token. A new
	// network is recorded at most once a minute, so a network stays known for at least an hour.
	maxNetworks = 64
)

// Tokens returns the API tokens, sorted by name. It includes tokens that have expired.
func (s *Store) Tokens(ctx context.Context) ([]deadletter.APIToken, error) {
	return s.tokens(ctx, `ORDER BY name`)
}

// TokenBy returns the token with the given hash. It records that the token is used, and from where.
// The first use from a network is recorded as an act. If the use cannot be recorded, for example
// because the disk is full, the token is still accepted. If no token has that hash, or if the token
// has expired, the error wraps ErrNotFound.
func (s *Store) TokenBy(ctx context.Context, hash [32]byte) (deadletter.APIToken, error) {
	list, err := s.tokens(ctx, `WHERE hash = $1`, hash[:])
	if err != nil {
		return deadletter.APIToken{}, err
	}
	now := s.now()
	if len(list) == 0 || !list[0].ExpiresAt.IsZero() && !now.Before(list[0].ExpiresAt) {
		return deadletter.APIToken{}, deadletter.NoSuch("token")
	}
	t, from := list[0], deadletter.AddressOf(ctx)
	recent := now.Sub(t.UsedAt).Abs() < tokenUse
	if recent && t.UsedFrom == from {
		return t, nil
	}
	moved, err := s.newNetwork(ctx, t.ID, from, now)
	if err != nil {
		return deadletter.APIToken{}, err
	}
	if recent && !moved {
		return t, nil
	}
	err = s.tx(ctx, bulk, func(x *tx) error {
		// The token is found by its hash and not by its id. If a token was revoked, a token that is
		// added in the meantime can have the same id.
		if err := x.row(`UPDATE tokens SET used_at = $2, used_from = $3 WHERE hash = $1
			RETURNING id`, []any{hash[:], x.now, from}, &t.ID); err != nil {
			return orNotFound("token", err)
		}
		if !moved {
			return nil
		}
		return x.tokenMoved(t, from)
	})
	if errors.Is(err, deadletter.ErrNotFound) { // the token was revoked in the meantime
		return deadletter.APIToken{}, err
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the use of a token was not recorded", "token", t.Name, "err", err)
	}
	return t, ctx.Err()
}

// newNetwork reports whether a token is used for the first time from the network of an address. If
// so, this use must be recorded. A request through a socket of the machine has no address, so it is
// not recorded.
func (s *Store) newNetwork(ctx context.Context, token int64, from string, now time.Time) (bool, error) {
	if from == "" {
		return false, nil
	}
	rows, err := s.ask(ctx, `SELECT coalesce(max(network = $2), 0), coalesce(max(at), 0) FROM token_networks
		WHERE token = $1`, token, deadletter.Network(from))
	var known bool
	var newest time.Time
	if err == nil {
		err = columns{{"known", &known}, {"newest", instant{&newest}}}.scan(rows, func() error { return nil })
	}
	if err != nil {
		return false, fmt.Errorf("networks of a token: %w", err)
	}
	return !known && now.Sub(newest).Abs() >= tokenUse, nil
}

// tokenMoved records that a token is used for the first time from the network of an address. If the
// token then has more than maxNetworks recorded networks, tokenMoved deletes the oldest records.
func (t *tx) tokenMoved(a deadletter.APIToken, from string) error {
	var id int64
	err := t.row(`INSERT INTO token_networks (token, network, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
		RETURNING id`, []any{a.ID, deadletter.Network(from), t.now}, &id)
	if errors.Is(err, sql.ErrNoRows) { // another request has recorded the network first
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := t.exec(`DELETE FROM token_networks WHERE token = $1 AND id <= (SELECT id FROM token_networks
		WHERE token = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)`, a.ID, maxNetworks); err != nil {
		return err
	}
	detail := ""
	if a.UsedFrom != "" {
		detail = "before from " + a.UsedFrom
	}
	return t.audit(deadletter.Once(deadletter.ActTokenMoved, a.Principal().Name, detail, tokenTarget(a.Name)))
}

func (s *Store) tokens(ctx context.Context, where string, args ...any) (list []deadletter.APIToken, err error) {
	var t deadletter.APIToken
	var role, places string
	wanted := columns{
		{`id`, &t.ID},
		{`name`, &t.Name},
		{`role`, &role},
		{`reveal`, &t.Grant.Reveal},
		{`purge`, &t.Grant.Purge},
		{`places`, &places},
		{`created_at`, instant{&t.CreatedAt}},
		{`created_by`, &t.CreatedBy},
		{`expires_at`, instant{&t.ExpiresAt}},
		{`used_at`, instant{&t.UsedAt}},
		{`used_from`, &t.UsedFrom},
	}
	rows, err := s.ask(ctx, `SELECT `+wanted.list()+` FROM tokens `+where, args...)
	if err == nil {
		err = wanted.scan(rows, func() (err error) {
			if err := grant(&t.Grant, role, places); err != nil {
				return err
			}
			list = append(list, t)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	return list, nil
}

// grant decodes the role and the places of a grant, which the database stores as texts.
func grant(g *deadletter.Grant, role, places string) (err error) {
	if g.Role, err = deadletter.ParseRole(role); err != nil {
		return err
	}
	g.Places = deadletter.Places{}
	return json.Unmarshal([]byte(places), &g.Places)
}

func placesText(p deadletter.Places) string {
	text, _ := json.Marshal(p) // json.Marshal cannot fail, because the places are all texts
	return string(text)
}

// AddToken records a new token and fills in its id and time. It stores only the hash of the token's
// secret. The error wraps ErrConflict if the name is taken.
func (s *Store) AddToken(ctx context.Context, a deadletter.APIToken, hash [32]byte) (deadletter.APIToken, error) {
	err := s.tx(ctx, bulk, func(t *tx) error {
		err := t.row(`INSERT INTO tokens (name, hash, role, reveal, purge, created_at, created_by, expires_at, places)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (name) DO NOTHING RETURNING id`,
			[]any{
				a.Name, hash[:], a.Grant.Role.String(), a.Grant.Reveal, a.Grant.Purge, t.now, a.CreatedBy,
				millis(a.ExpiresAt), placesText(a.Grant.Places),
			}, &a.ID)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf(
				"%w: there is a token %s already; revoke it first, or choose another name", deadletter.ErrConflict,
				a.Name,
			)
		}
		if err != nil {
			return err
		}
		a.CreatedAt = time.UnixMilli(t.now).UTC()
		return t.audit(deadletter.Once(deadletter.ActTokenAdded, a.CreatedBy, a.Words(), tokenTarget(a.Name)))
	})
	return a, err
}

// RevokeToken deletes a token. From then on, requests with the token are refused. The error wraps
// ErrNotFound if no token has that name.
func (s *Store) RevokeToken(ctx context.Context, name, by string) error {
	return s.tx(ctx, bulk, func(t *tx) error {
		var id int64
		if err := t.row(`DELETE FROM tokens WHERE name = $1 RETURNING id`, []any{name}, &id); err != nil {
			return orNotFound("token "+deadletter.Visible(deadletter.Cut(name, 60)), err)
		}
		if _, err := t.exec(`DELETE FROM token_networks WHERE token = $1`, id); err != nil {
			return err
		}
		return t.audit(deadletter.Once(deadletter.ActTokenRevoked, by, "", tokenTarget(name)))
	})
}

func tokenTarget(name string) deadletter.Target {
	return deadletter.Target{Kind: deadletter.TargetToken, Name: name}
}
