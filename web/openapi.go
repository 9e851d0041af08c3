package web

import (
	_ "embed"
	"net/http"
)

// openAPIDocument describes the API; a test checks it against the routes.
//
//go:embed openapi.yaml
var openAPIDocument []byte

func openAPI(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Type", "application/yaml")
	rw.Write(openAPIDocument)
}
