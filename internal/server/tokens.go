package server

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
)

// TokenFile gives access to the tokens in the file of a store that no server has open. It needs no
// token, because whoever may write to that file may do everything anyway. An installation can get
// its first token in this way.
type TokenFile struct {
	store *store.Store
	ctx   context.Context
}

// Tokens opens the tokens in the file of a store. The file must exist.
func Tokens(ctx context.Context, path string) (*TokenFile, error) {
	s, err := openStopped(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	return &TokenFile{s, deadletter.Through(ctx, deadletter.WayCLI)}, nil
}

// openStopped opens the file of a store, which must exist, while no server has it open.
func openStopped(ctx context.Context, path string, brokers []config.Broker) (*store.Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, wrong("%w; start dlo once, so that the store exists", err)
	}
	s, err := store.Open(ctx, path, store.Options{Log: slog.New(slog.DiscardHandler), Brokers: storeBrokers(brokers)})
	if err != nil {
		return nil, explainStore(err, path)
	}
	return s, nil
}

// Add adds a token and returns the secret of the token.
func (f *TokenFile) Add(name string, g deadletter.Grant, expires time.Time) (secret string, err error) {
	t, err := deadletter.NewAPIToken(name, g, expires, time.Now())
	if err != nil {
		return "", err
	}
	t.CreatedBy, secret = deadletter.Local.Name, deadletter.NewSecret()
	_, err = f.store.AddToken(f.ctx, t, deadletter.SecretHash(secret))
	return secret, err
}

// Close closes the store of the tokens.
func (f *TokenFile) Close() error { return f.store.Close() }
