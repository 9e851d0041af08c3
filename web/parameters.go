package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	defaultLimit = 50
	maxLimit     = 500
)

// parameters reads the parameters of a call, and rejects unknown ones. If it ignored them, a filter
// with a misspelt name would have no effect.
func parameters(r *http.Request, names ...string) (url.Values, error) {
	form, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the parameters cannot be read: a semicolon or a percent sign in a value must be escaped")
	}
	for name := range form {
		if !slices.Contains(names, name) {
			return nil, invalid("there is no parameter %q here", deadletter.Visible(deadletter.Cut(name, 40)))
		}
	}
	return form, nil
}

func limitOf(form url.Values) (int, error) {
	text := form.Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, invalid("limit is a number from 1 to %d", maxLimit)
	}
	return n, nil
}

// Paging selects a page of a list: at most limit elements, from the cursor after on.
type Paging struct {
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	After string `query:"after"`
}

// instant parses a parameter that is a time. If the parameter is absent, it returns the zero time.
func instant(form url.Values, name string) (time.Time, error) {
	text := form.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, invalid("%s must be a time, for example 2026-11-20T14:00:00Z", name)
	}
	return at, nil
}
