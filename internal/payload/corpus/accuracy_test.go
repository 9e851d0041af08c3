package corpus

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/payload/corpus/trial"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// TestAccuracy ranks random messages of the registered types. It counts a message as decidable if
// no other type decodes the message with the same shape. Two messages have the same shape if they
// have the same fields, and if the same fields contain texts, bytes, or messages of the same shape.
func TestAccuracy(t *testing.T) {
	c := load()
	step, each := 5, 1
	if soak {
		step, each = 1, 5
	}
	d := &payload.Decoder{Types: c.Registry}
	r := rand.New(rand.NewPCG(1, 2))
	var n struct {
		all, skipped, decidable, first, firstMatched, undecidable, flagged, undecidableFirst, confidentlyWrong, prior, matched, peeled, unregistered int
	}
	wrongs := 0
	for i := r.IntN(step); i < len(c.All); i += step {
		md := c.All[i]
		for range each {
			m := payloadtest.Instance(md, r)
			body, err := proto.MarshalOptions{AllowPartial: true}.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			n.all++
			got := d.Match(body, payload.Hints{}, nil)
			if len(got.Matches) == 0 && got.Types == 0 { // the body is too short, or it is a text
				n.skipped++
				continue
			}
			first := len(got.Matches) > 0 && got.Matches[0].Type == string(md.FullName())
			if got.Verdict == payload.Matched && !first {
				n.confidentlyWrong++
			}
			if others := alike(c.All, m, body); others == 0 {
				n.decidable++
				if first {
					n.first++
					if got.Verdict == payload.Matched {
						n.firstMatched++
					}
				} else if wrongs++; wrongs <= 10 {
					t.Logf(
						"%s: %s %s; %+v of %d bytes", md.FullName(), got.Verdict, got.Why,
						got.Matches[:min(2, len(got.Matches))], len(body),
					)
				}
			} else {
				n.undecidable++
				if got.Verdict != payload.Matched {
					n.flagged++
				}
				if first {
					n.undecidableFirst++
				}
			}
			if got.Verdict == payload.Matched {
				n.matched++
				doc := d.Decode([]byte(base64.StdEncoding.EncodeToString(body)), payload.Hints{}, nil)
				if doc.Type == got.Matches[0].Type && len(doc.Layers) == 1 && bytes.Equal(doc.Body, body) {
					n.peeled++
				} else {
					t.Logf("%s in base64: %q %v", md.FullName(), doc.Type, doc.Steps)
				}
			}
			if wouldMatch(got, string(md.FullName())) {
				n.unregistered++
			}
			got = d.Match(body, payload.Hints{Prior: map[string]float64{string(md.FullName()): 1}}, nil)
			if len(got.Matches) > 0 && got.Matches[0].Type == string(md.FullName()) {
				n.prior++
			}
		}
	}
	compared := n.all - n.skipped
	t.Logf(
		"%d types, %d messages; %d (%.1f %%) too short or text", len(c.All), n.all, n.skipped,
		trial.Percent(n.skipped, n.all),
	)
	t.Logf(
		"decidable %d: right first %.2f %%, and matched %.2f %%", n.decidable, trial.Percent(n.first, n.decidable),
		trial.Percent(n.firstMatched, n.decidable),
	)
	t.Logf(
		"undecidable %d: not called matched %.2f %%, right first %.2f %%", n.undecidable,
		trial.Percent(n.flagged, n.undecidable), trial.Percent(n.undecidableFirst, n.undecidable),
	)
	t.Logf("matched %d, in base64 too %d", n.matched, n.peeled)
	t.Logf("wrong and confident when its own type is not registered: %.2f %%", trial.Percent(n.unregistered, compared))
	t.Logf(
		"wrong and confident %.2f %%; with a prior, right first %.2f %%", trial.Percent(n.confidentlyWrong, compared),
		trial.Percent(n.prior, compared),
	)
	if trial.Percent(n.first, n.decidable) < 95 || trial.Percent(n.confidentlyWrong, compared) > 1 ||
		trial.Percent(n.prior, compared) < 99 || n.peeled != n.matched {
		t.Error(
			"below the goals: 95 % right first where it can be decided, at most 1 % wrong and confident, 99 % with a prior, and base64 of what is matched is matched",
		)
	}
	// A message is undecidable if several types decode it equally well. It must then be flagged,
	// and not be called matched. If such a message is matched nevertheless, the match is usually
	// correct, because the match also considers times, type URLs and duplicate keys.
	if trial.Percent(n.flagged, n.undecidable) < 95 {
		t.Error("fewer than 95 % of the undecidable are flagged")
	}
}

// wouldMatch reports whether another type would be a match if the type of the body were not
// registered.
func wouldMatch(r payload.Ranking, own string) bool {
	var others []payload.Match
	for _, m := range r.Matches {
		if m.Type != own {
			others = append(others, m)
		}
	}
	return r.Enough && len(others) > 0 && others[0].Score >= 0.80 &&
		(len(others) == 1 || others[0].Score-others[1].Score > 0.04)
}

// alike decodes a message as each of the other types, and returns how many of the results have the
// same shape as the message.
func alike(all []protoreflect.MessageDescriptor, m *dynamicpb.Message, body []byte) int {
	n := 0
	for _, md := range all {
		if md.FullName() == m.Descriptor().FullName() || !mayRead(md, m) {
			continue
		}
		o := dynamicpb.NewMessage(md)
		if (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(body, o) == nil && proto.Size(o) == len(body) &&
			sameShape(m, o) {
			n++
		}
	}
	return n
}

// mayRead reports whether it is useful to decode a body with a type. Because of this check, most
// types need not be tried.
func mayRead(md protoreflect.MessageDescriptor, m protoreflect.Message) bool {
	ok := true
	m.Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		o := md.Fields().ByNumber(fd.Number())
		ok = o != nil && class(o) == class(fd)
		return ok
	})
	return ok
}

// class returns the kind of the values of a field, as far as the wire shows it.
func class(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return "text"
	case protoreflect.BytesKind:
		return "bytes"
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return "message"
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return "32 bits"
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return "64 bits"
	}
	return "varint"
}

func sameShape(a, b protoreflect.Message) bool {
	if len(b.GetUnknown()) > 0 {
		return false
	}
	same := true
	a.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		o := b.Descriptor().Fields().ByNumber(fd.Number())
		if same = o != nil && class(o) == class(fd) && b.Has(o); !same {
			return false
		}
		w := b.Get(o)
		if same = validEnum(o, w); !same {
			return false
		}
		if fd.Message() == nil {
			return true
		}
		x, y := messages(fd, v), messages(o, w)
		if fd.IsMap() != o.IsMap() { // entries have no order, so only their number is compared
			return true
		}
		if same = len(x) == len(y); !same {
			return false
		}
		for i := range x {
			if same = sameShape(x[i], y[i]); !same {
				return false
			}
		}
		return true
	})
	return same
}

// messages returns the messages in a field. For a map, it returns the values that are messages.
func messages(fd protoreflect.FieldDescriptor, v protoreflect.Value) (list []protoreflect.Message) {
	switch {
	case fd.IsMap() && fd.MapValue().Message() != nil:
		return nil
	case fd.IsMap():
	case fd.IsList():
		for i := range v.List().Len() {
			list = append(list, v.List().Get(i).Message())
		}
	default:
		list = append(list, v.Message())
	}
	return list
}

func validEnum(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	if fd.Enum() == nil {
		return true
	}
	has := func(v protoreflect.Value) bool { return fd.Enum().Values().ByNumber(v.Enum()) != nil }
	if !fd.IsList() {
		return has(v)
	}
	for i := range v.List().Len() {
		if !has(v.List().Get(i)) {
			return false
		}
	}
	return true
}
