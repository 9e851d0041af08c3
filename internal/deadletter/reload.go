package deadletter

// Reload says what a reload of the configuration file changed, or what it would change. Each text
// begins with the path of a key.
type Reload struct {
	File      string   `json:"file"`       // "" = dlo runs without a configuration file
	Changes   []string `json:"changes"`    // what applies at once
	NextStart []string `json:"next_start"` // what applies from the next start
}
