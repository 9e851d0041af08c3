package deadletter

import "time"

// View is a saved query.
type View struct {
	ID    int64     `json:"id"`
	Name  string    `json:"name"`
	Query string    `json:"query"` // text of the query; relative times stay relative
	Mine  bool      `json:"mine"`  // only the person who saved the view can see it
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

// Override is a redirect that a person saved. Letters of one queue are sent to another queue.
type Override struct {
	ID     int64     `json:"id"`
	Broker string    `json:"broker"`
	VHost  string    `json:"vhost"`
	Queue  string    `json:"queue"`
	To     string    `json:"to"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Facet contains the values of one field among some letters. The values with the most letters come
// first.
type Facet struct {
	Field   string
	Values  []FacetValue
	Sampled int // number of newest letters that were counted as a sample; 0 = all letters were counted
}

// Facets contains the facets for a query. If all letters were counted, Sampled is 0. Otherwise it
// is the number of newest letters that were counted.
type Facets struct {
	Fields  []Facet
	Sampled int
}

// Histogram contains the number of letters received in each interval of time, by outcome. If all
// letters were counted, Sampled is 0. Otherwise it is the number of newest letters that were
// counted as a sample.
type Histogram struct {
	From    time.Time     `json:"from,omitzero"` // start of the first bar
	To      time.Time     `json:"to,omitzero"`   // end of the last bar
	Step    time.Duration `json:"step"`          // duration of one bar
	Bars    []Bar         `json:"bars"`
	Sampled int           `json:"sampled"`
}

// Bar is one interval of a histogram. Each letter counts in exactly one of the four outcomes.
type Bar struct {
	At        time.Time `json:"at"` // start of the interval
	Waiting   int       `json:"waiting"`
	Recovered int       `json:"recovered"`
	Dead      int       `json:"dead"`
	Discarded int       `json:"discarded"`
}

// Add adds n letters in the state s to the bar.
func (b *Bar) Add(s State, n int) {
	switch s {
	case StateQuiet:
		b.Recovered += n
	case StateDead, StateHeld:
		b.Dead += n
	case StateDiscarded, StatePurged:
		b.Discarded += n
	default:
		b.Waiting += n
	}
}

// Total returns the number of letters that were received in the interval.
func (b Bar) Total() int { return b.Waiting + b.Recovered + b.Dead + b.Discarded }
