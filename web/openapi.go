package web

import (
	_ "embed"
	"net/http"
)

// openAPIDocument describes the API; a test checks it against the routes.
//
//go:embed openapi.yaml
var openAPIDocument []byte

// openAPI handles GET /openapi.yaml?version=. The version is 3.1, or 3.0 for older generators.
func (w *Web) openAPI(rw http.ResponseWriter, r *http.Request) {
	document := openAPIDocument
	switch version := r.URL.Query().Get("version"); version {
	case "", "3.1":
	case "3.0":
		var err error
		if document, err = olderOpenAPI(); err != nil {
			w.fail(rw, r, err)
			return
		}
	default:
		w.fail(rw, r, invalid("the versions of the document are 3.1 and 3.0"))
		return
	}
	rw.Header().Set("Content-Type", "application/yaml")
	rw.Write(document)
}
