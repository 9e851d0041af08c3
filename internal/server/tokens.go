package server

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
)

// TokenFile accesses the tokens in a store file that no server has open. Whoever may write that
// file may do everything, so an installation can get its first token in this way.
type TokenFile struct {
	store *store.Store
	ctx   context.Context
}

// Tokens opens the tokens of a store file. The file has to exist.
func Tokens(ctx context.Context, path string) (*TokenFile, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, wrong("%w; start dlo once, so that the store exists", err)
	}
	s, err := store.Open(ctx, path, store.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, explainStore(err, path)
	}
	return &TokenFile{s, deadletter.Through(ctx, deadletter.WayCLI)}, nil
}

// Add adds a token and returns its secret.
func (f *TokenFile) Add(name string, g deadletter.Grant, expires time.Time) (secret string, err error) {
	t, err := deadletter.NewAPIToken(name, g, expires, time.Now())
	if err != nil {
		return "", err
	}
	t.CreatedBy, secret = deadletter.Local.Name, deadletter.NewSecret()
	_, err = f.store.AddToken(f.ctx, t, deadletter.SecretHash(secret))
	return secret, err
}

// Close closes the store.
func (f *TokenFile) Close() error { return f.store.Close() }
