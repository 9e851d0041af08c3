package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// orderWord is what a list says of its order.
type orderWord struct {
	name          string // in the menu and the caption: "newest first"
	column        string // the head of its column of times
	first         string // the first page: "Newest 50 of 1,341"
	before, after string // the pages beside it
	up            bool   // its column goes up
}

var orderWords = map[deadletter.Order]orderWord{
	deadletter.OrderReceived: {"newest first", "Received", "Newest", "Newer", "Older", false},
	deadletter.OrderOldest:   {"oldest first", "Received", "Oldest", "Older", "Newer", true},
	deadletter.OrderDied:     {"last died first", "Died", "Last died", "Previous", "Next", false},
	deadletter.OrderAttempts: {"most attempts first", "Received", "First", "Previous", "Next", false},
	deadletter.OrderSize:     {"largest first", "Received", "Largest", "Previous", "Next", false},
	deadletter.OrderDue:      {"next due first", "Due", "Next due", "Sooner", "Later", true},
}

// order is what the list says of its order.
func (p LettersPage) order() orderWord {
	if w, ok := orderWords[p.Order]; ok {
		return w
	}
	return orderWords[deadletter.OrderReceived]
}

// at is the time of a letter that the list shows.
func (p LettersPage) at(r deadletter.Row) time.Time {
	switch p.Order {
	case deadletter.OrderDue:
		return r.DueAt
	case deadletter.OrderDied:
		return r.DiedAt
	}
	return r.ReceivedAt
}

// byTime says whether the column of times is what the list is sorted by.
func (p LettersPage) byTime() bool {
	return p.Order != deadletter.OrderAttempts && p.Order != deadletter.OrderSize
}

// sortTo is the address of the list in another order; "" where it has none.
func (p LettersPage) sortTo(order deadletter.Order) string {
	for _, s := range p.Sorts {
		if s.Order == order {
			return s.Link
		}
	}
	return ""
}

// turned is the order that a press of the head of the column of times leads to.
func (p LettersPage) turned() deadletter.Order {
	if p.Order == deadletter.OrderReceived || p.Order == "" {
		return deadletter.OrderOldest
	}
	return deadletter.OrderReceived
}

// span says which part of the list is shown.
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
