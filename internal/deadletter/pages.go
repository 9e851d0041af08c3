package deadletter

import "time"

// View is a saved query.
type View struct {
	ID    int64
	Name  string
	Query string // as written: relative times stay relative
	By    string
	At    time.Time
}

// Override is a redirect that a person saved: letters of a queue go to another.
type Override struct {
	ID                   int64
	Broker, VHost, Queue string
	To                   string
	By                   string
	Reason               string
	At                   time.Time
}

// Facet is the values of one field among selected letters, most letters first.
type Facet struct {
	Field   string
	Values  []FacetValue
	Sampled int // newest letters that stand for all; 0: all are counted
}

// Facets are the facets of a query. Sampled is 0 when they count all its letters, else how many of
// the newest they were counted over.
type Facets struct {
	Fields  []Facet
	Sampled int
}

// Histogram is how many letters were received when, by what became of them. Sampled is as in
// Facets.
type Histogram struct {
	From, To time.Time     // of the bars: From is the start of the first, To the end of the last
	Step     time.Duration // of one bar
	Bars     []Bar
	Sampled  int
}

// Bar is one interval of a histogram. The four outcomes are a partition of its letters.
type Bar struct {
	At                                  time.Time // start
	Waiting, Recovered, Dead, Discarded int
}

// Add counts n letters of a state.
func (b *Bar) Add(s State, n int) {
	switch s {
	case StateSettled:
		b.Recovered += n
	case StateDead, StateHeld:
		b.Dead += n
	case StateDiscarded, StatePurged:
		b.Discarded += n
	default:
		b.Waiting += n
	}
}

// Total is how many letters were received in the interval.
func (b Bar) Total() int { return b.Waiting + b.Recovered + b.Dead + b.Discarded }
