package web

import (
	_ "embed"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// These are the documents that a test makes from the calls, their types and their comments.
var (
	//go:embed openapi.json
	openAPI31 []byte
	//go:embed openapi-3.0.json
	openAPI30 []byte
)

var apiInfo = huma.Info{
	Title:   "Dead Letter Office",
	Version: "v1",
	Description: `Letters that RabbitMQ consumers gave up on, and operations on them. Everything is JSON.
Times are RFC 3339 in UTC and end in Z, with at most 3 digits after the second. Durations are texts
such as 2m0s; a request may also give days, such as 90d. null means unknown, and a text that is empty
means none. A time that has not come, or that never will, is absent. Bytes are base64; errors are
problem+json (RFC 9457). Ids: letters are UUIDs, groups look like G-418, operations like O-77. A
parameter or key that a call does not know is an error.`,
	License: &huma.License{Name: "Apache-2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"},
	Contact: &huma.Contact{Name: "Dead Letter Office", URL: "https://github.com/deadletteroffice/dlo"},
}

type documentIn struct {
	Version string `query:"version" enum:"3.1,3.0" default:"3.1"`
}

// getDocument returns this document. It describes every call of this server. The version is 3.1, or
// 3.0 for generators that do not read 3.1, such as oapi-codegen.
func (w *Web) getDocument(rw http.ResponseWriter, r *http.Request) {
	document := openAPI31
	switch r.URL.Query().Get("version") {
	case "", "3.1":
	case "3.0":
		document = openAPI30
	default:
		w.fail(rw, r, invalid("the versions of the document are 3.1 and 3.0"))
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.Write(document)
}
