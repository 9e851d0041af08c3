package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// InRetry contains the letters in retry, for sentences about them.
type InRetry struct {
	deadletter.InRetry
	Unconsumed []string // queues of these letters that are known to have no consumer
}

// retryURL returns the URL of the list of exactly the letters in retry.
func retryURL() string {
	var states []string
	for _, s := range deadletter.RetryStates {
		states = append(states, string(s))
	}
	return LettersURL((query.Query{}).With(query.State, states...).String(), "", "")
}

// count returns the beginning of a sentence, for example "40 letters are being retried".
func (r InRetry) count() string {
	return LetterCount(r.Letters) + plural(r.Letters, " is", " are") + " being retried"
}

// sentence says how many letters are in retry, when the first of them can die or count as quiet,
// and which of their queues nobody consumes.
func (r InRetry) sentence(now time.Time) []Span {
	text := []Span{{Text: r.count(), Link: retryURL()}}
	if r.DiesAt.After(now) {
		text = append(text, words("; the first can die at "), clockSpan(now, r.DiesAt))
	} else if r.QuietAt.After(now) {
		text = append(text, words("; the first can count as quiet at "), clockSpan(now, r.QuietAt))
	}
	if len(r.Unconsumed) > 0 {
		var names []string
		for _, q := range r.Unconsumed {
			names = append(names, queueName(q))
		}
		text = append(text, words("; nobody consumes "+enumerated(names)))
	}
	return append(text, words("."))
}

// nextWords says when the next letter of a group is due, for example "next retry 09:05".
func nextWords(now time.Time, g deadletter.GroupRow) string {
	text := "next retry "
	if g.Waiting == 0 {
		text = "quiet from "
	}
	if g.Retrying > deadletter.NextOf { // letters that were not read may be due earlier
		text += "or before "
	}
	return text + hourMinute(now, g.NextAt)
}
