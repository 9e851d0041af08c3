package web

import (
	"cmp"
	"context"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	sharedOf     = 60      // the maximum number of newest letters to read
	sharedBytes  = 1 << 20 // the maximum total size of the bodies in bytes
	sharedFields = 400     // the maximum number of fields per letter
	sharedShown  = 12
	sharedValue  = 80 // longer values, in bytes, are not compared
)

// values contains counts for a set of letters. For each field and each value of it, it contains the
// number of letters with that value.
type values struct {
	counts map[string]map[string]int
	of     int // the number of letters counted
}

// inGroup returns the query for the letters of a group that wait for a decision of a person.
func inGroup(id deadletter.GroupID) query.Query {
	return (query.Query{}).With(query.Group, id.String()).With(
		query.State, string(deadletter.StateDead), string(deadletter.StateHeld),
	)
}

// valuesIn counts the values of the newest letters that q selects. Masked values are replaced. It
// stops when the bodies that it has read reach the limit for their total size.
func (w *Web) valuesIn(ctx context.Context, q query.Query) (values, error) {
	v := values{counts: map[string]map[string]int{}}
	done, err := w.waitForPlace(ctx)
	if err != nil {
		return v, err
	}
	defer done()
	rows, _, _, err := w.Store.Letters(ctx, q, deadletter.Page{Limit: sharedOf})
	if err != nil {
		return v, err
	}
	bytes := 0
	for i := range rows {
		if bytes += rows[i].Size; bytes > sharedBytes && v.of > 0 {
			break
		}
		fields, err := w.valuesOf(ctx, rows[i].ID)
		if err != nil {
			return v, err
		}
		v.of++
		for field, value := range fields {
			if v.counts[field] == nil {
				v.counts[field] = map[string]int{}
			}
			v.counts[field][value]++
		}
	}
	return v, nil
}

// shared returns the values that at least half of the newest letters of a group have in common. It
// compares body fields, headers and properties. If the parameter "different" is true, it also
// returns how these letters differ from letters of the same queue that did not die again.
func (w *Web) shared(ctx context.Context, g *deadletter.GroupRow, different bool) (deadletter.GroupValues, error) {
	here, err := w.valuesIn(ctx, inGroup(g.ID))
	v := deadletter.GroupValues{Shared: commonest(here), Sampled: here.of}
	if err != nil || !different || here.of == 0 || g.Queue == "" {
		return v, err
	}
	o := deadletter.Origin{Broker: g.Broker, VHost: g.VHost, Queue: g.Queue}
	quiet, err := w.valuesIn(ctx, view.QueueQuery(o, true).With(query.State, string(deadletter.StateQuiet)))
	v.Different, v.Quiet = differences(here, quiet), quiet.of
	return v, err
}

// commonest returns the fields in which at least half of the letters have the same value. The most
// common value comes first.
func commonest(in values) []deadletter.Shared {
	var list []deadletter.Shared
	for field, counts := range in.counts {
		best := deadletter.Shared{Field: field, Values: len(counts)}
		for value, n := range counts {
			if n > best.Letters || n == best.Letters && value < best.Value {
				best.Value, best.Letters = value, n
			}
		}
		if in.of > 1 && 2*best.Letters >= in.of {
			list = append(list, best)
		}
	}
	slices.SortFunc(list, func(a, b deadletter.Shared) int {
		return cmp.Or(b.Letters-a.Letters, cmp.Compare(a.Field, b.Field))
	})
	return list[:min(len(list), sharedShown)]
}

// differences returns the values that are much more or much less frequent among the letters of a
// group than among quiet letters. Quiet letters are those that did not die again. It returns at
// most one value for each field. The greatest difference comes first.
//
// If the presence of a field differs more than any of its values, the returned value is "". Such a
// field is either missing in the group, or it has many values there and is rare among quiet
// letters.
func differences(here, quiet values) []deadletter.Different {
	var list []deadletter.Different
	if here.of < view.CompareAtLeast || quiet.of < view.CompareAtLeast {
		return nil
	}
	fields := maps.Clone(here.counts)
	maps.Copy(fields, quiet.counts)
	for field := range fields {
		if aboutDeath(field) {
			continue
		}
		best := deadletter.Different{
			Field: field, Here: total(here.counts[field]), Otherwise: total(quiet.counts[field]),
		}
		for value := range here.counts[field] {
			d := deadletter.Different{
				Field:     field,
				Value:     value,
				Here:      here.counts[field][value],
				Otherwise: quiet.counts[field][value],
			}
			switch more := gap(d, here.of, quiet.of) - gap(best, here.of, quiet.of); {
			case more > 0, more == 0 && (best.Value == "" || value < best.Value):
				best = d
			}
		}
		if significant(best, here.of, quiet.of) {
			list = append(list, best)
		}
	}
	slices.SortFunc(list, func(a, b deadletter.Different) int {
		return cmp.Or(cmp.Compare(gap(b, here.of, quiet.of), gap(a, here.of, quiet.of)), cmp.Compare(a.Field, b.Field))
	})
	return list[:min(len(list), sharedShown)]
}

// aboutDeath reports whether a field is a header about the death or the attempts of a letter.
// Letters that died again are expected to differ in such a header.
func aboutDeath(field string) bool {
	name, header := strings.CutPrefix(strings.ToLower(field), "header.")
	return header && aboutDeaths.MatchString(name)
}

var aboutDeaths = regexp.MustCompile("dlo-|error|exception|stack|fault|fail|retr|attempt|tries|deliver")

// minGap is the smallest difference between two shares that is reported. A share says how many of
// the letters have a value, and is between 0 and 1.
const minGap = 0.2

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// gap compares how frequent a value is in two sets of letters: in the letters of a group, and in
// quiet letters, which did not die again. The result is the difference between the two shares, from
// 0 to 1.
func gap(d deadletter.Different, here, quiet int) float64 {
	return math.Abs(float64(d.Here)/float64(here) - float64(d.Otherwise)/float64(quiet))
}

// significant reports whether a difference is more than an accident of sampling. The difference
// must be at least minGap. It must also be at least two and a half times the standard error of the
// difference between the two shares.
func significant(d deadletter.Different, here, quiet int) bool {
	share := float64(d.Here+d.Otherwise) / float64(here+quiet)
	deviation := math.Sqrt(share * (1 - share) * (1/float64(here) + 1/float64(quiet)))
	return gap(d, here, quiet) >= max(minGap, 2.5*deviation)
}

// valuesOf returns the values of a letter by field. It names body fields as a search names them,
// and headers as header.NAME. It also includes the properties that publishers choose.
func (w *Web) valuesOf(ctx context.Context, id deadletter.ID) (map[string]string, error) {
	l, err := w.Store.Letter(ctx, id)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	doc := w.Decoder().Letter(&l)
	addLeaves(doc.Fields, "", values)
	w.hide(&l)
	for i, value := range []string{
		l.Properties.AppID, l.Properties.Type, l.Properties.ContentType, l.RoutingKey, l.Exchange,
	} {
		addValue(values, propertyNames[i], value)
	}
	for name, value := range l.Arrived.Headers {
		if text, ok := value.(string); ok && !deadletter.BrokerOwned(name) {
			addValue(values, "header."+name, text)
		}
	}
	return values, nil
}

// propertyNames lists the names under which the function valuesOf returns properties of a letter.
var propertyNames = []string{"app", "type", "content-type", "key", "exchange"}

func addValue(values map[string]string, name, value string) {
	if value != "" && value != payload.Masked && len(value) <= sharedValue && len(values) < sharedFields {
		values[name] = value
	}
}

// addLeaves adds the simple values of a tree to a map, by their paths. It skips lists, because
// their elements vary from letter to letter.
func addLeaves(nodes []payload.Node, prefix string, into map[string]string) {
	for i := range nodes {
		n := &nodes[i]
		if n.Unknown || n.Masked || n.Kind == payload.List || n.Kind == payload.More {
			continue
		}
		if len(n.Children) > 0 {
			addLeaves(n.Children, prefix+n.Key()+".", into)
		} else if value, ok := n.Scalar(); ok {
			addValue(into, prefix+n.Key(), value)
		}
	}
}
