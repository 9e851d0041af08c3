package server

import (
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// masksOf returns what the configuration hides.
func masksOf(m config.Masking) payload.Masks {
	masks := payload.Masks{Headers: m.Headers, Patterns: m.Patterns, JSON: m.JSON}
	for _, f := range m.Fields {
		masks.Fields = append(masks.Fields, payload.FieldMask(f))
	}
	return masks
}
