package web

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

// choice is the content of the form of a plan: the call as far as it could be parsed, the fields as
// they were typed, and the mistakes in them.
type choice struct {
	call     startIn
	options  view.Options
	mistakes map[string]string
}

const maxReasonText = 500 // maximum length in bytes

// choiceIn parses the form of an action. It returns an error if the selection of letters is not
// valid. If another field is not valid, it records a mistake at that field.
//
// Usually, the ticked letters are selected. With scope=all, these are all letters that match q and
// were there at the time in the field "until", without those in the field "except".
func choiceIn(r *http.Request) (choice, error) {
	if err := r.ParseForm(); err != nil {
		return choice{}, formError(err)
	}
	form := r.PostForm
	c := choice{
		mistakes: map[string]string{},
		options:  view.Options{Typed: form.Get("count"), Reason: form.Get("reason"), Restored: form.Get("restored")},
	}
	b := &c.call.Body
	c.call.Key = form.Get("key")
	b.Action, b.Reason = deadletter.Verb(form.Get("action")), strings.TrimSpace(c.options.Reason)
	b.Restored, b.TakeOver = c.options.Restored != "", form["take"]
	b.Expect, _ = strconv.Atoi(form.Get("expect")) // optional; 0 = the number is not checked
	if form.Get("scope") == "all" {
		b.Q, b.Until = new(form.Get("q")), moment(form.Get("until"))
		if b.Until.IsZero() {
			return c, invalid("the form does not say when its letters were selected: open the list again")
		}
		b.Except = strings.Fields(strings.Join(form["except"], " "))
	} else {
		b.IDs = append(form["id"], strings.Fields(form.Get("ids"))...)
	}
	if len(b.Reason) > maxReasonText {
		c.mistakes["reason"] = fmt.Sprintf("A reason has at most %d bytes.", maxReasonText)
		b.Reason = ""
	}
	switch b.Action {
	case deadletter.VerbRequeue:
		c.parsePace(r)
		c.options.Reset = form.Get("reset")
		b.Reset = c.options.Reset != ""
	case deadletter.VerbEdit:
		c.parsePace(r)
		c.options.Patch = strings.TrimSpace(strings.ReplaceAll(form.Get("patch"), "\r\n", "\n"))
		if c.options.Patch == "" {
			c.mistakes["patch"] = "Write what to change."
		} else if err := checkPatch([]byte(c.options.Patch)); err != nil {
			c.mistakes["patch"] = sentence(err, http.StatusBadRequest) + "."
		} else {
			b.Patch = []byte(c.options.Patch)
		}
		if form.Has("key") && b.Reason == "" && c.mistakes["reason"] == "" {
			c.mistakes["reason"] = "Say why, so that the next person understands the change."
		}
	case deadletter.VerbReschedule:
		c.parseOrder(r)
		c.parseDue(r, time.Now())
	default:
		c.parseOrder(r)
	}
	return c, nil
}

// parseOrder parses the order in which letters are processed, and the maximum number of letters.
func (c *choice) parseOrder(r *http.Request) {
	c.options.Order = "oldest"
	for name, into := range map[string]*string{"order": &c.options.Order, "first": &c.options.First} {
		if r.PostForm.Has(name) {
			*into = strings.TrimSpace(r.PostFormValue(name))
		}
	}
	if n, ok := c.parseCount("first", c.options.First, "letters"); ok {
		c.call.Body.First = n
	}
	switch c.options.Order {
	case "newest", "oldest", "":
		c.call.Body.Order = c.options.Order
	default:
		c.mistakes["order"] = "The order is oldest or newest."
	}
}

// parsePace parses the fields that say how fast and how carefully a requeue sends letters. A form
// without these fields, such as the button on the page of a letter, gets the defaults.
func (c *choice) parsePace(r *http.Request) {
	c.options.Canary, c.options.Wait = strconv.Itoa(operation.DefaultCanary), view.TypedDuration(
		operation.DefaultCanaryWait,
	)
	c.options.Rate, c.options.StopAt = decimal(operation.DefaultRate), decimal(operation.DefaultStopAt)
	for name, into := range map[string]*string{
		"canary": &c.options.Canary, "wait": &c.options.Wait, "rate": &c.options.Rate, "stop_at": &c.options.StopAt,
		"max_depth": &c.options.MaxDepth, "to": &c.options.To,
	} {
		if r.PostForm.Has(name) {
			*into = strings.TrimSpace(r.PostFormValue(name))
		}
	}
	o, b := &c.options, &c.call.Body
	if n, ok := c.parseCount("canary", o.Canary, "letters, or 0 for none"); ok {
		b.Canary = &n
	}
	if wait, err := deadletter.ParseDuration(o.Wait); err != nil || wait < 0 || wait > 24*time.Hour {
		c.mistakes["wait"] = "A wait is written 30s, 2m or 1h, and is at most 24h."
	} else {
		b.CanaryWait = &wait
	}
	if rate, err := number(o.Rate); err != nil || rate <= 0 || rate > 1e6 {
		c.mistakes["rate"] = "A rate is a number of letters per second above 0, for example 50."
	} else {
		b.Rate = &rate
	}
	if stop, err := number(strings.TrimSuffix(o.StopAt, "%")); err != nil || stop < 0 || stop > 100 {
		c.mistakes["stop_at"] = "This must be a percentage from 0 to 100; 0 = never."
	} else {
		b.StopAt = &stop
	}
	if n, ok := c.parseCount("max_depth", o.MaxDepth, "messages"); ok && n > 0 {
		b.MaxDepth = &n
	}
	c.parseOrder(r)
	if len(o.To) > 255 {
		c.mistakes["to"] = "The name of a queue has at most 255 bytes."
	} else {
		b.To = o.To
	}
	if r.PostFormValue("try") != "" {
		none := 0
		b.First, b.Canary = 1, &none
	}
}

// parseDue parses the time of the retry, which is a duration from now or a point in time. A form
// without this field, such as the button on the page of a letter, gets one hour.
func (c *choice) parseDue(r *http.Request, now time.Time) {
	c.options.Due = "1h"
	if r.PostForm.Has("due") {
		c.options.Due = strings.TrimSpace(r.PostFormValue("due"))
	}
	b := &c.call.Body
	b.DueAt = now.Add(time.Hour)
	if in, err := deadletter.ParseDuration(c.options.Due); err == nil && in >= 0 {
		b.DueAt, b.DueIn = now.Add(in), in
	} else if at, err := time.Parse(time.RFC3339, c.options.Due); err == nil {
		b.DueAt = at
	} else {
		c.mistakes["due"] = "Give a time from now, for example 30m or 12h, or a point in time, for example 2026-11-22T06:00:00Z."
	}
	if b.DueAt.After(now.Add(rules.MaxDelay)) {
		c.mistakes["due"] = "A letter can be due in 365 days at most."
		b.DueAt, b.DueIn = now.Add(time.Hour), 0
	}
}

// parseCount parses a whole number in the forms in which people write it. An empty text means 0.
func (c *choice) parseCount(name, text, of string) (int, bool) {
	if text == "" {
		return 0, true
	}
	n, err := strconv.Atoi(strings.NewReplacer(",", "", " ", "").Replace(text))
	if err != nil || n < 0 || n > math.MaxInt32 {
		c.mistakes[name] = "This is a whole number of " + of + "."
		return 0, false
	}
	return n, true
}

func number(text string) (float64, error) { return strconv.ParseFloat(strings.TrimSpace(text), 64) }

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
