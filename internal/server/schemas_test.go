package server

import (
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/schemas"
)

// TestSchemasKnowTheNamesOfFields checks paths in the configuration and in queries against schemas.
// A schema may give a field a JSON name that cannot be guessed from its other name.
func TestSchemasKnowTheNamesOfFields(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := &Server{process: &process{log: slog.New(slog.NewTextHandler(&log, nil))}, library: schemas.New(nil, schemas.Options{})}
	s.masks = masksOf(config.Masking{
		Fields: []deadletter.MaskedField{{Path: deadletter.FieldPath{"card", "secret_key"}}},
	})
	s.cfg.Search.Fields = []string{"card.holderName", "card.holder", "sk"}
	s.reportUnknownPaths()
	if log.Len() > 0 {
		t.Errorf("there are no types, and the log has %s", &log)
	}
	if _, err := s.library.Registry().AddSource("shop", fstest.MapFS{
		"shop.proto": {Data: []byte(`syntax = "proto3"; package shop;
		message Order { Card card = 1; } message Card { string secret_key = 1 [json_name = "sk"]; string holder_name = 2; }`)},
	}); err != nil {
		t.Fatal(err)
	}
	s.reportUnknownPaths()
	if got := strings.Count(log.String(), "\n"); got != 1 || !strings.Contains(log.String(), "path=card.holder\n") {
		t.Errorf("the log has %s", &log)
	}
	for path, want := range map[string]bool{
		"card.secret_key": true, "card.secretKey": true, "card.sk": true, "sk": false, "card.holderName": false,
	} {
		if got := s.isMasked(path); got != want {
			t.Errorf("%s: masked is %v", path, got)
		}
	}
}
