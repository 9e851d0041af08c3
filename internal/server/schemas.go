package server

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/schemas"
)

// openSchemas opens the library of types. From then on, bodies are decoded with this library. If a
// type cannot be read, openSchemas reports that type and uses all others.
func (s *Server) openSchemas(ctx context.Context) error {
	s.library = schemas.New(s.store, schemas.Options{
		Directory: s.cfg.Schemas.Directory, Reflection: s.cfg.Schemas.Reflection, Decoder: s.decoderNow, Untyped: s.store.Untyped, Log: s.log,
		Between: func(change func() error) error {
			if s.reader == nil { // while dlo starts, there is no reader yet
				return change()
			}
			return s.reader.Between(change)
		},
	})
	s.masks = masksOf(s.cfg.Masking)
	s.decoder.Store(&payload.Decoder{Types: s.library.Registry(), Mask: s.masks.Body(), MaxBody: int64(s.cfg.Requeue.MaxBody)})
	return s.library.Load(ctx)
}
