package server

import (
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// masksOf returns the masks that the configuration describes.
func masksOf(m config.Masking) payload.Masks {
	return payload.Masks{Headers: m.Headers, Patterns: m.Patterns, Fields: m.Fields, JSON: m.JSON}
}
