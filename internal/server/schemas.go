package server

import (
	"context"
	"slices"

	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/schemas"
)

// createSchemas creates the library of types, with which bodies are decoded.
func (s *Server) createSchemas() {
	s.library = schemas.New(s.store, schemas.Options{
		Directory:  s.cfg.Schemas.Directory,
		Reflection: s.cfg.Schemas.Reflection,
		Decoder:    s.decoderNow,
		Untyped:    s.store.Untyped,
		Log:        s.log,
		Between: func(change func() error) error {
			if s.reader == nil { // while dlo starts, there is no reader yet
				return change()
			}
			return s.reader.Between(change)
		},
	})
	s.masks = masksOf(s.cfg.Masking)
	s.decoder.Store(&payload.Decoder{
		Types:       s.library.Registry(),
		TypeHeaders: s.cfg.Schemas.TypeHeaders,
		Mask:        s.masks.Body(),
		MaxBody:     int64(s.cfg.Requeue.MaxBody),
	})
}

// loadSchemas reads the types. If a type cannot be read, loadSchemas reports that type and uses all
// others.
func (s *Server) loadSchemas(ctx context.Context) error {
	err := s.library.Load(ctx)
	s.reportUnknownPaths()
	return err
}

// reportUnknownPaths logs the paths in search.fields that no body of a registered type can have.
func (s *Server) reportUnknownPaths() {
	types := s.library.Registry()
	for _, path := range s.cfg.Search.Fields {
		if len(types.Types()) > 0 && len(types.Paths(path)) == 0 {
			s.log.Warn("search.fields: no registered type has this path, so it finds only JSON bodies", "path", path)
		}
	}
}

// isMasked reports whether queries must not name a path of the body. The path may contain JSON
// names that only a schema connects with the names in the configuration.
func (s *Server) isMasked(path string) bool {
	return s.masks.Field(path) || slices.ContainsFunc(s.library.Registry().Paths(path), s.masks.Field)
}
