package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// orderWord contains the words that describe one order of the list.
type orderWord struct {
	name          string // in the menu and the caption, for example "newest first"
	column        string // the heading of the column with the time
	first         string // the words for the first page, for example "Newest" in "Newest 50 of 1,341"
	before, after string // the links to the neighbouring pages
	up            bool   // the order is ascending
}

var orderWords = map[deadletter.Order]orderWord{
	deadletter.OrderReceived: {"newest first", "Received", "Newest", "Newer", "Older", false},
	deadletter.OrderOldest:   {"oldest first", "Received", "Oldest", "Older", "Newer", true},
	deadletter.OrderDied:     {"last died first", "Died", "Last died", "Previous", "Next", false},
	deadletter.OrderAttempts: {"most attempts first", "Received", "First", "Previous", "Next", false},
	deadletter.OrderSize:     {"largest first", "Received", "Largest", "Previous", "Next", false},
	deadletter.OrderDue:      {"next due first", "Due", "Next due", "Sooner", "Later", true},
}

// order returns words that say in which order the list is shown now.
func (p LettersPage) order() orderWord {
	if w, ok := orderWords[p.Order]; ok {
		return w
	}
	return orderWords[deadletter.OrderReceived]
}

// rowTime returns the time that the list shows for a letter.
func (p LettersPage) rowTime(r deadletter.Row) time.Time {
	switch p.Order {
	case deadletter.OrderDue:
		return r.DueAt
	case deadletter.OrderDied:
		return r.DiedAt
	}
	return r.ReceivedAt
}

// byTime reports whether the list is sorted by a time, and not by attempts or size. The time column
// then shows this time.
func (p LettersPage) byTime() bool {
	return p.Order != deadletter.OrderAttempts && p.Order != deadletter.OrderSize
}

// sortTo returns the URL of the list in another order. It returns "" if the list cannot be shown in
// that order.
func (p LettersPage) sortTo(order deadletter.Order) string {
	for _, s := range p.Sorts {
		if s.Order == order {
			return s.Link
		}
	}
	return ""
}

// otherOrder returns the order that a click on the heading of the time column leads to.
func (p LettersPage) otherOrder() deadletter.Order {
	if p.Order == deadletter.OrderReceived || p.Order == "" {
		return deadletter.OrderOldest
	}
	return deadletter.OrderReceived
}

// rangeWords says which part of the list the page shows.
func (p LettersPage) rangeWords() string {
	place := p.order().first
	switch {
	case p.Newer != "" && p.Older == "":
		place = "Last"
	case p.Newer != "":
		place = "Next"
	}
	return place + " " + Count(len(p.Rows)) + " of " + AtLeast(p.Total, p.Exact)
}
