package main

import (
	"net/http"
	"time"
)

// pages makes the web server.
func (s *server) pages() error {
	s.http = &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: 5 * time.Second}
	return nil
}
