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

	differentShown  = 3
	headlineAtLeast = 20 // the minimum number of letters on each side of a headline
	headlineLift    = 2  // how many times as frequent as elsewhere the value of a headline is at least
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
// compares body fields, headers and properties. It also returns the headline of the group. If the
// parameter "different" is true, it also returns how these letters differ from letters of the same
// queue and type that did not die again.
func (w *Web) shared(ctx context.Context, g *deadletter.Group, different bool) (deadletter.GroupValues, error) {
	here, err := w.valuesIn(ctx, inGroup(g.ID))
	v := deadletter.GroupValues{Shared: commonest(here), Sampled: here.of}
	if err != nil || here.of == 0 || g.Queue == "" {
		return v, err
	}
	if v.Headline, err = w.headline(ctx, g, here); err != nil || !different {
		return v, err
	}
	quiet, err := w.valuesIn(ctx, likeGroup(g).With(query.State, string(deadletter.StateQuiet)))
	list := differences(here, quiet)
	v.Different, v.Quiet = list[:min(len(list), differentShown)], quiet.of
	return v, err
}

// likeGroup returns the query for all letters of the queue of a group that have the type of the
// group, or of a group that is merged into it.
func likeGroup(g *deadletter.Group) query.Query {
	types := []string{cmp.Or(g.Type, query.NoType)}
	for i := range g.Merged {
		types = append(types, cmp.Or(g.Merged[i].Type, query.NoType))
	}
	return view.QueueQuery(originOf(&g.GroupRow), true).With(query.Type, types...)
}

func originOf(g *deadletter.GroupRow) deadletter.Origin {
	return deadletter.Origin{Broker: g.Broker, VHost: g.VHost, Queue: g.Queue}
}

// headline returns the value of an indexed body field that distinguishes a group most from the
// other letters of its queue and type. It returns nil if no value does, and for groups with several
// queues or types. The parameter "read" contains the values of the newest letters. A value that is
// not among them may have been masked since it was indexed, and is no headline.
func (w *Web) headline(ctx context.Context, g *deadletter.Group, read values) (*deadletter.Headline, error) {
	if slices.ContainsFunc(g.Merged, func(m deadletter.GroupRow) bool {
		return m.Type != g.Type || originOf(&m) != originOf(&g.GroupRow)
	}) {
		return nil, nil
	}
	here, err := w.indexedValues(ctx, inGroup(g.ID))
	if err != nil || here.of < headlineAtLeast {
		return nil, err
	}
	rest, err := query.Parse(likeGroup(g).String()+" -group:"+g.ID.String()+" -state:purged", w.queryOptions())
	if err != nil {
		return nil, err
	}
	others, err := w.indexedValues(ctx, rest)
	if err != nil || others.of < headlineAtLeast {
		return nil, err
	}
	var list []deadletter.Different
	for path, counts := range here.counts {
		for value, n := range counts {
			d := deadletter.Different{Field: path, Value: value, Here: n, Otherwise: others.counts[path][value]}
			readable := slices.ContainsFunc(deadletter.Spellings(path), func(name string) bool {
				return read.counts[name][value] > 0 && !slices.Contains(propertyNames, name) &&
					!strings.HasPrefix(name, "header.")
			})
			if readable && 2*n >= here.of && n*others.of >= headlineLift*d.Otherwise*here.of &&
				significant(d, here.of, others.of) {
				list = append(list, d)
			}
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	best := slices.MinFunc(list, byLift(here.of, others.of))
	return &deadletter.Headline{
		Path: best.Field, Value: best.Value,
		Share:     float64(best.Here) / float64(here.of),
		Elsewhere: float64(best.Otherwise) / float64(others.of),
		Sampled:   here.of, Others: others.of,
	}, nil
}

// indexedValues counts the values that the indexed body fields have in the newest letters that q
// selects.
func (w *Web) indexedValues(ctx context.Context, q query.Query) (values, error) {
	v := values{counts: map[string]map[string]int{}}
	facets, err := w.Store.BodyFacets(ctx, q, w.Fields...)
	for _, f := range facets {
		counts := map[string]int{}
		for _, value := range f.Values {
			counts[value.Value] = value.Count
		}
		v.counts[strings.TrimPrefix(f.Field, "body.")], v.of = counts, f.Sampled
	}
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
// group than among other letters, for example quiet ones, which did not die again. It returns at
// most one value for each field. The greatest ratio of the two shares comes first.
//
// If the presence of a field differs more than any of its values, the returned value is "". Such a
// field is either missing in the group, or it has many values there and is rare in the other
// letters.
func differences(here, others values) []deadletter.Different {
	var list []deadletter.Different
	if here.of < view.CompareAtLeast || others.of < view.CompareAtLeast {
		return nil
	}
	fields := maps.Clone(here.counts)
	maps.Copy(fields, others.counts)
	for field := range fields {
		if aboutDeath(field) {
			continue
		}
		best := deadletter.Different{
			Field: field, Here: total(here.counts[field]), Otherwise: total(others.counts[field]),
		}
		for value := range here.counts[field] {
			d := deadletter.Different{
				Field:     field,
				Value:     value,
				Here:      here.counts[field][value],
				Otherwise: others.counts[field][value],
			}
			switch more := gap(d, here.of, others.of) - gap(best, here.of, others.of); {
			case more > 0, more == 0 && (best.Value == "" || value < best.Value):
				best = d
			}
		}
		if significant(best, here.of, others.of) {
			list = append(list, best)
		}
	}
	slices.SortFunc(list, byLift(here.of, others.of))
	return list
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
// other letters. The result is the difference between the two shares, from 0 to 1.
func gap(d deadletter.Different, here, others int) float64 {
	return math.Abs(float64(d.Here)/float64(here) - float64(d.Otherwise)/float64(others))
}

// lift compares as gap does. The result is the ratio of the greater share to the smaller one. Both
// counts are increased by one half, so that the ratio exists if no letter has the value.
func lift(d deadletter.Different, here, others int) float64 {
	ratio := (float64(d.Here) + 0.5) / float64(here) / ((float64(d.Otherwise) + 0.5) / float64(others))
	return max(ratio, 1/ratio)
}

// byLift orders values: the greatest lift comes first.
func byLift(here, others int) func(a, b deadletter.Different) int {
	return func(a, b deadletter.Different) int {
		return cmp.Or(
			cmp.Compare(lift(b, here, others), lift(a, here, others)), cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Value, b.Value),
		)
	}
}

// significant reports whether a difference is more than an accident of sampling. The difference
// must be at least minGap. It must also be at least two and a half times the standard error of the
// difference between the two shares.
func significant(d deadletter.Different, here, others int) bool {
	share := float64(d.Here+d.Otherwise) / float64(here+others)
	deviation := math.Sqrt(share * (1 - share) * (1/float64(here) + 1/float64(others)))
	return gap(d, here, others) >= max(minGap, 2.5*deviation)
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
