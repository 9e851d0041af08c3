package web

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// narrow returns the query to which a button of a list leads. It also reports whether that query
// differs from the query "q" of the form. Besides q, each button sends one parameter:
//
//   - "add" contains text that narrow appends to the query.
//   - "toggle" and "exclude" contain a term with one value, which narrow adds or removes.
//   - "range" contains the name of a time range, "from" and "to" contain times, and "between"
//     contains an interval.
func (w *Web) narrow(form url.Values) (string, bool) {
	text := form.Get("q")
	if form.Has("add") {
		return strings.TrimSpace(text + " " + strings.TrimSpace(form.Get("add"))), true
	}
	if !slices.ContainsFunc([]string{"toggle", "exclude", "range", "from", "to", "between"}, form.Has) {
		return "", false
	}
	q, err := query.Parse(text, w.lookOptions())
	if err != nil {
		return text, true // the text has a mistake, which the page with the results reports
	}
	for _, name := range []string{"toggle", "exclude"} {
		if form.Has(name) {
			term, err := query.Parse(form.Get(name), w.lookOptions())
			if err != nil || len(term.Terms) != 1 || len(term.Terms[0].Values) != 1 {
				return text, true
			}
			return toggled(q, term.Terms[0], name == "exclude").String(), true
		}
	}
	if preset := form.Get("range"); preset != "" {
		q = q.With(query.Since).With(query.Before).With(query.Age)
		if slices.ContainsFunc(view.Presets, func(p view.Preset) bool { return p.Value == preset }) {
			q = q.With(query.Since, preset)
		}
		return q.String(), true
	}
	from, to := form.Get("from"), form.Get("to")
	if interval := form.Get("between"); interval != "" {
		from, to, _ = strings.Cut(interval, "/")
	}
	return withReceived(q, moment(from), moment(to)).String(), true
}

// moment parses a time from a form. A time without a time zone is in UTC. If the text is not a
// time, moment returns the zero time.
func moment(text string) time.Time {
	for _, layout := range []string{view.MinuteLayout, time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// toggled returns the query to which a button beside a value leads. The term t contains the field
// and this value. If q already selects the value, the new query no longer selects it. Otherwise the
// new query selects it. If "excluded" is true, the button excludes the value, or stops excluding
// it. A value is never both selected and excluded.
func toggled(q query.Query, t query.Term, excluded bool) query.Query {
	v := t.Values[0]
	had := false // reports whether q already had the value
	out := query.Query{}
	for _, old := range q.Terms {
		if old.Field != t.Field || old.Name != t.Name {
			out.Terms = append(out.Terms, old)
			continue
		}
		kept := old
		kept.Values = nil
		for _, o := range old.Values {
			if sameValue(o, v) {
				had = had || old.Not == excluded
			} else {
				kept.Values = append(kept.Values, o)
			}
		}
		if len(kept.Values) > 0 {
			out.Terms = append(out.Terms, kept)
		}
	}
	if had {
		return out
	}
	for i, old := range out.Terms {
		if old.Field == t.Field && old.Name == t.Name && old.Not == excluded {
			out.Terms[i].Values = append(slices.Clone(old.Values), v)
			return out
		}
	}
	t.Not = excluded
	out.Terms = append(out.Terms, t)
	return out
}

func sameValue(a, b query.Value) bool { return slices.Equal(a.Pattern, b.Pattern) && a.Raw == b.Raw }
