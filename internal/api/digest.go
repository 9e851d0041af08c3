package api

// DigestSent is the response to POST /digest/send.
type DigestSent struct {
	Channels []string `json:"channels"` // channels to which the digest is sent
}

// ChannelTest is the request of POST /channels/test.
type ChannelTest struct {
	Channel string `json:"channel"` // name in the configuration
}
