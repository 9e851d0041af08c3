package api

// Failure is what a consumer said of the latest death of a letter, in GET /letters/{id}.
type Failure struct {
	By      string `json:"by"` // annotation
	Type    string `json:"type"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
	Service string `json:"service"`
	Version string `json:"version"`
}

// Annotation is what a consumer says of a message that it rejects: the body of POST /annotations,
// which takes a list of them too. deadletter.ReadAnnotation reads it.
type Annotation struct {
	MessageID  string `json:"message_id,omitempty"`
	Token      string `json:"dlo_token,omitempty"`
	BodySHA256 string `json:"body_sha256,omitempty"` // in hex
	Queue      string `json:"queue,omitempty"`
	Exchange   string `json:"exchange,omitempty"`
	RoutingKey string `json:"routing_key,omitempty"`
	ErrorType  string `json:"error_type,omitempty"`
	Message    string `json:"message,omitempty"`
	Stack      string `json:"stack,omitempty"`
	Service    string `json:"service,omitempty"`
	Version    string `json:"version,omitempty"`
	At         string `json:"at,omitempty"` // a time; ReadAnnotation checks it
	Broker     string `json:"broker,omitempty"`
	VHost      string `json:"vhost,omitempty"`
}

// Annotated is the answer of POST /annotations: how many annotations were stored.
type Annotated struct {
	New    int `json:"new"`
	Again  int `json:"again"`  // the same was said shortly before
	Joined int `json:"joined"` // letters that were there already
}
