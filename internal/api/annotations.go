package api

// Annotation is a consumer's report on a message that it rejects. It is the body of POST
// /annotations, which also accepts a list of them. deadletter.ReadAnnotation parses it.
type Annotation struct {
	MessageID  string `json:"message_id,omitzero"`
	Token      string `json:"dlo_token,omitzero"`
	BodySHA256 string `json:"body_sha256,omitzero"` // SHA-256 of the body, in hex
	Queue      string `json:"queue,omitzero"`
	Exchange   string `json:"exchange,omitzero"`
	RoutingKey string `json:"routing_key,omitzero"`
	ErrorType  string `json:"error_type,omitzero"`
	Message    string `json:"message,omitzero"`
	Stack      string `json:"stack,omitzero"`
	Service    string `json:"service,omitzero"`
	Version    string `json:"version,omitzero"`
	At         string `json:"at,omitzero"` // a time, checked by ReadAnnotation
	Broker     string `json:"broker,omitzero"`
	VHost      string `json:"vhost,omitzero"`
}
