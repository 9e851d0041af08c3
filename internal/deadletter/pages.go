package deadletter

import "time"

// View is a saved query.
type View struct {
	ID    int64
	Owner string // person to whom it belongs; "" = everybody
	Name  string
	Query string // as written: relative times are kept
	By    string
	At    time.Time
}

// Override is a redirect saved by a person: letters of one queue go to another queue.
type Override struct {
	ID                   int64
	Broker, VHost, Queue string
	To                   string
	By                   string
	Reason               string
	At                   time.Time
}

// Facet holds the values of one field among selected letters, most letters first.
type Facet struct {
	Field   string
	Values  []FacetValue
	Sampled int // newest letters that were counted as a sample; 0 = all
}

// Facets are the facets of a query. Sampled is 0 if all its letters were counted; otherwise it is
// the number of newest letters that were counted.
type Facets struct {
	Fields  []Facet
	Sampled int
}

// Histogram contains the number of letters received in each interval of time, by outcome. Sampled
// has the same meaning as in Facets.
type Histogram struct {
	From, To time.Time     // start of the first bar, end of the last
	Step     time.Duration // width of one bar
	Bars     []Bar
	Sampled  int
}

// Bar is one interval of a histogram. Every letter counts in exactly one of the four outcomes.
type Bar struct {
	At                                  time.Time // start
	Waiting, Recovered, Dead, Discarded int
}

// Add counts n letters with state s.
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

// Total returns the number of letters received in the interval.
func (b Bar) Total() int { return b.Waiting + b.Recovered + b.Dead + b.Discarded }
