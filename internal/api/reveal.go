package api

// RevealRequest is the body of POST /letters/{id}/reveal. It names a field or a header.
type RevealRequest struct {
	Field  string `json:"field,omitzero"` // path in the decoded body
	Header string `json:"header,omitzero"`
}

// Revealed is the response to POST /letters/{id}/reveal.
type Revealed struct {
	Value string `json:"value"`
}
