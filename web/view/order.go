package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// orderWord holds the words that describe an order of the list.
type orderWord struct {
	name          string // in the menu and the caption: "newest first"
	column        string // heading of the list's time column
	first         string // the first page: "Newest 50 of 1,341"
	before, after string // links to the adjacent pages
	up            bool   // ascending
}

var orderWords = map[deadletter.Order]orderWord{
	deadletter.OrderReceived: {"newest first", "Received", "Newest", "Newer", "Older", false},
	deadletter.OrderOldest:   {"oldest first", "Received", "Oldest", "Older", "Newer", true},
	deadletter.OrderDied:     {"last died first", "Died", "Last died", "Previous", "Next", false},
	deadletter.OrderAttempts: {"most attempts first", "Received", "First", "Previous", "Next", false},
	deadletter.OrderSize:     {"largest first", "Received", "Largest", "Previous", "Next", false},
	deadletter.OrderDue:      {"next due first", "Due", "Next due", "Sooner", "Later", true},
}

// order returns the words for the current order of the list.
func (p LettersPage) order() orderWord {
	if w, ok := orderWords[p.Order]; ok {
		return w
	}
	return orderWords[deadletter.OrderReceived]
}

// at returns the time that the list shows for a letter.
func (p LettersPage) at(r deadletter.Row) time.Time {
	switch p.Order {
	case deadletter.OrderDue:
		return r.DueAt
	case deadletter.OrderDied:
		return r.DiedAt
	}
	return r.ReceivedAt
}

// byTime reports whether the list is sorted by its time column.
func (p LettersPage) byTime() bool {
	return p.Order != deadletter.OrderAttempts && p.Order != deadletter.OrderSize
}

// sortTo returns the URL of the list in another order, or "" if the order is not available.
func (p LettersPage) sortTo(order deadletter.Order) string {
	for _, s := range p.Sorts {
		if s.Order == order {
			return s.Link
		}
	}
	return ""
}

// turned returns the order that a click on the heading of the time column selects.
func (p LettersPage) turned() deadletter.Order {
	if p.Order == deadletter.OrderReceived || p.Order == "" {
		return deadletter.OrderOldest
	}
	return deadletter.OrderReceived
}

// span describes which part of the list is shown.
func (p LettersPage) span() string {
	place := p.order().first
	switch {
	case p.Newer != "" && p.Older == "":
		place = "Last"
	case p.Newer != "":
		place = "Next"
	}
	return place + " " + Count(len(p.Rows)) + " of " + AtLeast(p.Total, p.Exact)
}
