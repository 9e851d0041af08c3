package store_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
)

// found is a letter with all values that a query can match. The test computes from these values
// which letters a query must find.
type found struct {
	letter  deadletter.Letter
	indexed bool
	fields  map[string]string
	words   []string
	results map[string]bool // operations of the letter, with and without the result, e.g. "O-1" and "O-1/done"
}

// fillLibrary fills a store with letters that differ in every field of the query language. Most of
// them are indexed.
func fillLibrary(t testing.TB, s *store.Store, c *clock, seed uint64) []found {
	t.Helper()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	for number := range int64(6) {
		c.at = c.at.Add(37 * time.Minute)
		w := window(t, number+1, "sms", 40)
		for i := range w.Arrivals {
			a := &w.Arrivals[i]
			a.Body = []byte(
				strings.Repeat(
					pick("timeout ", "Größe ", "card_declined ", "alpha-beta "), 1+r.IntN(3),
				) + pick("", "x"),
			)
			a.Properties.AppID, a.Properties.CorrelationID = pick("", "shop", "shopping"), pick("", "c-1", "c-2")
			a.Properties.Headers["x-tenant"] = pick("acme", "acme-eu", "ACME", "")
			if r.IntN(2) == 0 {
				a.Properties.Headers["n"] = int64(r.IntN(3))
			}
		}
		w.Number = number + 1
		receive(t, s, w)
		letters, err := s.NextReceived(ctx, 500)
		if err != nil {
			t.Fatal(err)
		}
		var verdicts []deadletter.Classified
		for _, l := range letters {
			v := deadletter.Classified{
				Letter: l.ID, Reason: pick("rejected", "expired", ""), Type: pick("acme.A", "acme.Bee", ""),
				GroupTitle: "g", GroupVersion: 1,
				Severity: deadletter.Severity(pick("page", "notify", "digest")), Rule: pick("default", "noise"),
				Error: pick("", "timeout after 30s", "100% broken", "no_route"),
				To: []deadletter.Trigger{
					deadletter.ClassifiedDead, deadletter.ClassifiedRetry, deadletter.ClassifiedHold,
					deadletter.ClassifiedDiscard,
				}[r.IntN(4)],
			}
			if r.IntN(8) > 0 {
				v.Origin = deadletter.Origin{
					Broker: "main", VHost: pick("/", "blue"), Queue: pick("sms", "email", "email-eu", "a b"),
					Exchange: pick("events", ""), RoutingKey: pick("k", "k.2", ""),
				}
			}
			if v.To == deadletter.ClassifiedRetry {
				v.DueAt = c.now().Add(time.Duration(r.IntN(5)) * time.Minute)
			}
			// all letters of a group have the same key
			v.GroupKey = sha256.Sum256([]byte(v.Origin.VHost + v.Origin.Queue + v.Type + v.Reason))
			// the other letters remain received
			if number < 5 || r.IntN(2) == 0 {
				verdicts = append(verdicts, v)
			}
		}
		if err := s.Classify(ctx, verdicts); err != nil {
			t.Fatal(err)
		}
	}
	c.at = c.at.Add(time.Minute)
	ids := everyID(t, s)
	operate(t, s, deadletter.VerbDiscard, ids[3], ids[50], ids[90], ids[91])
	operate(t, s, deadletter.VerbPurge, ids[7], ids[60])
	_, due := requeue(t, s, c, ids[10:40]...)
	mark(t, s, c, deadletter.OutcomeConfirmed, due...)

	var all []found
	unindexed, err := s.NextUnindexed(ctx, 500)
	if err != nil {
		t.Fatal(err)
	}
	waiting := map[deadletter.ID]bool{}
	for _, l := range unindexed {
		waiting[l.ID] = true
	}
	results := map[deadletter.ID]map[string]bool{}
	for op := deadletter.OperationID(1); op <= 3; op++ {
		letters, _, err := s.OperationLetters(ctx, op, deadletter.Results, "", 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range letters {
			if results[l.Letter] == nil {
				results[l.Letter] = map[string]bool{}
			}
			results[l.Letter][op.String()] = true
			results[l.Letter][op.String()+"/"+strings.ReplaceAll(string(l.Result), " ", "-")] = true
		}
	}
	var index []deadletter.Indexed
	for i, id := range everyID(t, s) {
		l := letter(t, s, id)
		f := found{letter: l, fields: map[string]string{}, results: results[id]}
		if waiting[id] && i%11 > 0 { // some letters are not indexed yet
			p := l.Properties
			f.indexed = true
			f.fields = map[string]string{
				"id": string(id[len(id)-8:]), "exchange": l.Exchange, "key": l.RoutingKey, "rule": l.Rule,
				"app": p.AppID, "message_id": p.MessageID, "correlation_id": p.CorrelationID,
				"body.tier": []string{"gold", "silver", ""}[i%3],
				"read":      []string{"json", "too-large", "unknown", ""}[i%4],
			}
			for name, value := range p.Headers {
				if name != "x-death" {
					f.fields["header."+name] = fmt.Sprint(value)
				}
			}
			x := deadletter.Indexed{Letter: id, Text: string(l.Body)}
			for name, value := range f.fields {
				if value != "" {
					x.Fields = append(x.Fields, deadletter.IndexedField{Name: name, Value: value})
				}
			}
			index = append(index, x)
			f.words = strings.FieldsFunc(
				strings.ToLower(string(l.Body)), func(r rune) bool { return strings.ContainsRune(" -_", r) },
			)
		}
		all = append(all, f)
	}
	if err := s.Index(ctx, index); err != nil {
		t.Fatal(err)
	}
	return all
}

// glob decides whether a text matches a pattern. It is slow and simple, and the test compares the
// store with it.
func glob(pieces []string, text string) bool {
	if len(pieces) == 1 {
		return text == pieces[0]
	}
	if !strings.HasPrefix(text, pieces[0]) {
		return false
	}
	text = text[len(pieces[0]):]
	for cut := 0; cut <= len(text); cut++ {
		if glob(pieces[1:], text[cut:]) {
			return true
		}
	}
	return false
}

func fold(pieces []string) []string {
	out := make([]string, len(pieces))
	for i, p := range pieces {
		out[i] = strings.ToLower(p)
	}
	return out
}

// holds reports whether the letter has what a term asks for. It ignores the minus in front of a
// negated term. If searches cannot decide the term, the result "known" is false.
func (f *found) holds(t query.Term) (yes, known bool) {
	l := &f.letter
	value := func(v query.Value) bool {
		text := func(s string) bool { // like LIKE in SQLite, this ignores the case of ASCII letters
			if len(v.Pattern) == 1 {
				return s == v.Pattern[0]
			}
			return glob(fold(v.Pattern), strings.ToLower(s))
		}
		compare := func(n int64) bool {
			switch v.Compare {
			case query.Less:
				return n < v.Number
			case query.AtMost:
				return n <= v.Number
			case query.More:
				return n > v.Number
			case query.AtLeast:
				return n >= v.Number
			}
			return n == v.Number
		}
		at := l.ReceivedAt
		switch t.Field {
		case query.State:
			return string(l.State) == v.Raw
		case query.Severity:
			return string(l.Severity) == v.Raw
		case query.Reason:
			return text(l.Reason)
		case query.Queue:
			return glob(v.Pattern, l.Queue)
		case query.VHost:
			return l.Queue != "" && glob(v.Pattern, l.VHost)
		case query.Broker:
			return l.Queue != "" && glob(v.Pattern, l.Broker)
		case query.Type:
			if l.Type == "" {
				return v.Raw == query.NoType
			}
			return glob(v.Pattern, l.Type)
		case query.Group:
			return l.Group.String() == v.Raw
		case query.Owner:
			return l.Group != 0 && text("")
		case query.Status:
			return l.Group != 0 && v.Raw == "new"
		case query.ErrorText:
			return text(l.Error)
		case query.Attempts:
			return compare(int64(l.Attempts))
		case query.Size:
			return compare(int64(l.Size))
		case query.Since:
			return !at.Before(v.Time)
		case query.Before:
			return at.Before(v.Time)
		case query.Age:
			switch v.Compare {
			case query.More:
				return at.Before(v.Time)
			case query.AtLeast:
				return !at.After(v.Time)
			case query.Less:
				return at.After(v.Time)
			}
			return !at.Before(v.Time)
		case query.ID:
			return string(l.ID) == v.Raw
		case query.Op:
			return f.results[v.Raw]
		case query.Doubt:
			return string(l.Doubt) == v.Raw
		}
		name := string(t.Field)
		switch t.Field {
		case query.Header, query.Body:
			name += "." + t.Name
		case query.Words:
			last := ""
			if len(v.Pattern) == 2 {
				last = "*"
			}
			words := strings.FieldsFunc(
				strings.ToLower(v.Pattern[0]), func(r rune) bool { return strings.ContainsRune(" -_", r) },
			)
			for i, w := range words {
				if last == "*" && i == len(words)-1 {
					if !slices.ContainsFunc(f.words, func(has string) bool { return strings.HasPrefix(has, w) }) {
						return false
					}
				} else if !slices.Contains(f.words, w) {
					return false
				}
			}
			return true
		}
		has := f.fields[name]
		return has != "" && glob(v.Pattern, has)
	}
	known = f.indexed || !t.Field.Indexed()
	if t.Field == query.ID && len(t.Values[0].Raw) == 8 {
		return f.fields["id"] == t.Values[0].Raw, f.indexed
	}
	return slices.ContainsFunc(t.Values, value), known
}

func oracle(all []found, q query.Query) map[deadletter.ID]bool {
	selected := map[deadletter.ID]bool{}
	for i := range all {
		ok := true
		for _, t := range q.Terms {
			yes, known := all[i].holds(t)
			ok = ok && known && yes != t.Not
		}
		if ok {
			selected[all[i].letter.ID] = true
		}
	}
	return selected
}

// terms are the terms from which the test builds random queries.
var terms = []string{
	"state:dead", "state:dead,held", "state:received,purged", "state:scheduled", "queue:sms", "queue:email*",
	`queue:"a b"`, "queue:*mail*,sms", `queue:""`, "vhost:/", "vhost:bl*", "broker:main", "broker:other",
	"reason:rejected", "reason:*e*", `reason:""`, "type:acme.*", "type:none", "type:acme.A,none", "type:*ee",
	"group:G-1,G-2", "group:G-99", "rule:noise", "rule:def*", "severity:page,notify", "severity:digest",
	`owner:""`, "owner:eve", "status:new", "status:open", "status:snoozed", "error:*TIMEOUT*", `error:"100% broken"`,
	"error:*%*", "error:no_route", "error:no?route", `error:""`, "exchange:events", "exchange:ev*", "key:k", "key:k*",
	"app:shop", "app:shop*",
	"app:*", "message_id:m-1-1", "message_id:m-2-*", "correlation_id:c-1,c-2", "header.x-tenant:acme",
	"header.x-tenant:acme*", "header.n:1,2", "header.n:*", "header.none:x", "body.tier:gold", "body.tier:*",
	"read:json", "read:unknown,too-large", "read:too*", "attempts:0", "attempts:>=1", "size:>20", "size:<=16,>30",
	"since:2h", "before:1h", "age:>1h", "age:<=2h", "age:>=90m", "age:<30m", "op:O-1", "op:O-1/done",
	"op:O-3/confirmed,O-2", "op:O-99999", "doubt:restart", "doubt:cut-off,restart",
	"timeout", "time*", `"alpha beta"`, "größe", "gr*", "declined", "nothing",
}

// TestTheTermsHaveEveryField checks that the terms include every field that has a name, with two
// exceptions. Terms on id are built from the letters of the test. A term on sort only changes the
// order of a list, which TestListsAndCounts covers.
func TestTheTermsHaveEveryField(t *testing.T) {
	t.Parallel()
	for _, f := range query.Fields {
		asks := func(term string) bool {
			name, _, _ := strings.Cut(term, ":")
			name, _, _ = strings.Cut(name, ".")
			return name == string(f)
		}
		if f != query.ID && f != query.Sort && !slices.ContainsFunc(terms, asks) {
			t.Errorf("no term asks for %s", f)
		}
	}
}

// TestCountedIsListedIsActedOn computes which letters must match a random query. The counts, the
// pages in both directions, the histograms and the frozen selections must all contain exactly these
// letters.
func TestCountedIsListedIsActedOn(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	all := fillLibrary(t, s, c, 7)
	ctx := context.Background()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	var texts []string
	for _, term := range terms {
		texts = append(texts, term, "-"+term)
	}
	for i := range 40 {
		texts = append(texts, "id:"+string(all[i*3].letter.ID), "-id:"+string(all[i*3].letter.ID))
		if short := all[i*3].fields["id"]; short != "" {
			texts = append(texts, "id:"+short)
		}
	}
	random := 60
	if os.Getenv("DLO_SOAK") == "1" {
		random = 5000
	}
	for range random {
		var parts []string
		for range 1 + r.IntN(4) {
			term := terms[r.IntN(len(terms))]
			if r.IntN(4) == 0 {
				term = "-" + term
			}
			parts = append(parts, term)
		}
		texts = append(texts, strings.Join(parts, " "))
	}
	selected := 0
	for i, text := range texts {
		q, err := query.Parse(text, query.Options{Now: c.now(), Body: func(path string) bool { return path == "tier" }})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want := oracle(all, q)
		selected += len(want)
		n, exact, err := s.Count(ctx, q, 0)
		if err != nil || !exact || n != len(want) {
			t.Errorf("%q: %d counted, want %d (%v)", text, n, len(want), err)
			continue
		}
		if n, exact, err := s.Count(ctx, q, 5); err != nil || n != min(len(want), 5) && !exact ||
			exact && n != len(want) || !exact && len(want) <= 5 {
			t.Errorf("%q: counted up to 5: %d, exact %v, of %d (%v)", text, n, exact, len(want), err)
		}
		limit := 500
		if i%5 == 0 { // page by page, in both directions
			limit = 50
		}
		there, back := walk(t, s, q, deadletter.OrderReceived, limit)
		if len(there) != len(want) || !slices.Equal(there, back) {
			t.Errorf("%q: %d listed, %d on the way back, want %d", text, len(there), len(back), len(want))
		}
		for _, id := range there {
			if !want[id] {
				t.Errorf("%q: lists %s", text, id)
			}
		}
		if i%3 > 0 {
			continue
		}
		shares, _, err := s.Survey(ctx, query.Selection{Query: &q}, 1000)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		surveyed := 0
		for _, share := range shares {
			surveyed += share.Letters
		}
		if surveyed != len(want) {
			t.Errorf("%q: %d planned, want %d", text, surveyed, len(want))
		}
		h, err := s.Histogram(ctx, q, time.Time{}, time.Time{}, 10)
		timed := slices.ContainsFunc(q.Terms, func(t query.Term) bool {
			return t.Field == query.Since || t.Field == query.Before || t.Field == query.Age
		}) // no time in the query is inside a bar
		drawn := 0
		for _, b := range h.Bars {
			drawn += b.Total()
		}
		if err != nil || len(h.Bars) > 10 || drawn != len(want) && !timed {
			t.Errorf("%q: %d drawn in %d bars, want %d (%v)", text, drawn, len(h.Bars), len(want), err)
		}
		if len(want) > 0 && len(want) < 30 {
			op := deadletter.Operation{
				Action: deadletter.VerbRestore,
				By:     "local",
				Pace:   deadletter.Pace{Hold: time.Hour},
			}
			if err := s.Freeze(ctx, &op, query.Selection{Query: &q}, 0, anyPlace); err != nil || op.Total != len(want) {
				t.Errorf("%q: %d frozen, want %d (%v)", text, op.Total, len(want), err)
			}
			if err := s.CancelOperation(ctx, op.ID, "local"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if selected < len(texts) {
		t.Errorf("%d queries select %d letters: too few to show anything", len(texts), selected)
	}
}
