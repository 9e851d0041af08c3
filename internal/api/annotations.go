package api

// Failure is the consumer's report on a letter's latest death. The response to GET /letters/{id}
// contains it.
type Failure struct {
	By      string `json:"by"` // annotation
	Type    string `json:"type"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
	Service string `json:"service"`
	Version string `json:"version"`
}

// Annotation is a consumer's report on a message that it rejects. It is the body of POST
// /annotations, which also accepts a list of them. deadletter.ReadAnnotation parses it.
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
	At         string `json:"at,omitempty"` // a time, checked by ReadAnnotation
	Broker     string `json:"broker,omitempty"`
	VHost      string `json:"vhost,omitempty"`
}

// Annotated is the response to POST /annotations: the number of annotations stored.
type Annotated struct {
	New    int `json:"new"`
	Again  int `json:"again"`  // repeats of a recent annotation
	Joined int `json:"joined"` // letters that had already arrived
}
