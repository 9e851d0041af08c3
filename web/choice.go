package web

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

// choice is the content of the form of a plan: the call as far as it could be parsed, and the
// mistakes in its fields. The fields themselves stay in the form of the request.
type choice struct {
	form     url.Values
	call     startIn
	mistakes map[string]string
	pace     url.Values // the options for sending that the browser remembers
}

// paceFields are the fields whose values the browser remembers.
var paceFields = []string{"canary", "wait", "rate", "stop_at"}

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
	c := choice{form: form, mistakes: map[string]string{}}
	if kept, err := r.Cookie(paceCookie); err == nil {
		c.pace, _ = url.ParseQuery(kept.Value)
	}
	b := &c.call.Body
	c.call.Key = form.Get("key")
	b.Action, b.Reason = deadletter.Verb(form.Get("action")), strings.TrimSpace(form.Get("reason"))
	b.Restored, b.TakeOver = form.Get("restored") != "", form["take"]
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
		c.parsePace()
		b.Reset = form.Get("reset") != ""
	case deadletter.VerbEdit:
		c.parsePace()
		if patch := c.typed("patch", ""); patch == "" {
			c.mistakes["patch"] = "Write what to change."
		} else if err := payload.CheckPatch([]byte(patch)); err != nil {
			c.mistakes["patch"] = sentence(err, http.StatusBadRequest) + "."
		} else {
			b.Patch = []byte(patch)
		}
		if form.Has("key") && b.Reason == "" && c.mistakes["reason"] == "" {
			c.mistakes["reason"] = "Say why, so that the next person understands the change."
		}
	case deadletter.VerbReschedule:
		c.parseOrder()
		c.parseDue(time.Now())
	default:
		c.parseOrder()
	}
	return c, nil
}

// typed returns a field of the form. A form without the field, such as the button on the page of a
// letter, gets the text that the browser remembers, or else the given text.
func (c *choice) typed(name, otherwise string) string {
	text := cmp.Or(c.pace.Get(name), otherwise)
	if c.form.Has(name) {
		text = strings.TrimSpace(strings.ReplaceAll(c.form.Get(name), "\r\n", "\n"))
	}
	c.form.Set(name, text)
	return text
}

// parseOrder parses the order in which letters are processed, and the maximum number of letters.
func (c *choice) parseOrder() {
	b := &c.call.Body
	if n, ok := c.parseCount("first", "", "letters"); ok {
		b.First = n
	}
	var err error
	if b.Newest, err = deadletter.ParseNewestFirst(cmp.Or(c.typed("order", "oldest"), "oldest")); err != nil {
		c.mistakes["order"] = "The order is oldest or newest."
	}
}

// parsePace parses the fields that say how fast and how carefully a requeue sends letters.
func (c *choice) parsePace() {
	b := &c.call.Body
	if n, ok := c.parseCount("canary", strconv.Itoa(operation.DefaultCanary), "letters, or 0 for none"); ok {
		b.Canary = &n
	}
	wait, err := deadletter.ParseDuration(c.typed("wait", view.TypedDuration(operation.DefaultCanaryWait)))
	if b.CanaryWait = &wait; err != nil || wait < 0 || wait > 24*time.Hour {
		c.mistakes["wait"], b.CanaryWait = "A wait is written 30s, 2m or 1h, and is at most 24h.", nil
	}
	rate, err := number(c.typed("rate", view.PlainNumber(operation.DefaultRate)))
	if b.Rate = &rate; err != nil || rate <= 0 || rate > 1e6 {
		c.mistakes["rate"], b.Rate = "A rate is a number of letters per second above 0, for example 50.", nil
	}
	stop, err := number(strings.TrimSuffix(c.typed("stop_at", view.PlainNumber(operation.DefaultStopAt)), "%"))
	if b.StopAt = &stop; err != nil || stop < 0 || stop > 100 {
		c.mistakes["stop_at"], b.StopAt = "This must be a percentage from 0 to 100; 0 = never.", nil
	}
	if n, ok := c.parseCount("max_depth", "", "messages"); ok && n > 0 {
		b.MaxDepth = &n
	}
	c.parseOrder()
	if b.To = c.typed("to", ""); len(b.To) > deadletter.MaxQueueName {
		c.mistakes["to"], b.To = "The name of a queue has at most 255 bytes.", ""
	}
	if c.form.Get("try") != "" {
		b.First, b.Canary = 1, new(int)
	}
}

// parseDue parses the time of the retry, which is a duration from now or a point in time.
func (c *choice) parseDue(now time.Time) {
	due, b := c.typed("due", "1h"), &c.call.Body
	b.DueAt = now.Add(time.Hour)
	if in, err := deadletter.ParseDuration(due); err == nil && in >= 0 {
		b.DueAt, b.DueIn = now.Add(in), in
	} else if at, err := time.Parse(time.RFC3339, due); err == nil {
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
func (c *choice) parseCount(name, otherwise, of string) (int, bool) {
	text := c.typed(name, otherwise)
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
