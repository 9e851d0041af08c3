package payload

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	maxRanges      = 200          // the maximum number of ranges of one node
	maxOccurrences = 2 * maxNodes // the maximum number of occurrences in one message
)

// occurrence is one occurrence of a field on the wire, as ranges of bytes.
type occurrence struct {
	whole Range // the occurrence, including its tag
	in    Range // the content: without the length if it is length-delimited, without the end tag if it is a group
	wire  protowire.Type
}

// occurrences returns the occurrences of the fields of a message in the body, by field number. The
// message may consist of several parts, which the decoder merges.
func (t *tree) occurrences(parts []Range) map[protowire.Number][]occurrence {
	if len(parts) == 0 {
		return nil
	}
	by, total := make(map[protowire.Number][]occurrence), 0
	for _, part := range parts {
		for at := part.From; at < part.To && total < maxOccurrences; total++ {
			num, wire, n := protowire.ConsumeTag(t.body[at:part.To])
			if n < 0 {
				break
			}
			o := occurrence{whole: Range{at, at}, in: Range{at + n, at + n}, wire: wire}
			b := t.body[at+n : part.To]
			m := protowire.ConsumeFieldValue(num, wire, b)
			if m < 0 {
				break
			}
			o.whole.To, o.in.To = at+n+m, at+n+m
			switch wire {
			case protowire.BytesType:
				p, _ := protowire.ConsumeBytes(b)
				o.in.From = o.in.To - len(p)
			case protowire.StartGroupType:
				p, _ := protowire.ConsumeGroup(num, b)
				o.in.To = o.in.From + len(p)
			}
			by[num] = append(by[num], o)
			at = o.whole.To
		}
	}
	return by
}

// accepts reports whether the decoder accepts a value of the given wire type for the field fd.
func accepts(fd protoreflect.FieldDescriptor, wire protowire.Type) bool {
	return fd != nil && (wire == descriptor.WireType(fd.Kind()) ||
		wire == protowire.BytesType && fd.IsList() && descriptor.Packable(fd.Kind()))
}

// filterAccepted returns those occurrences that the decoder accepts for the field fd. If the
// parameter "accepted" is false, it returns the other occurrences instead.
func filterAccepted(list []occurrence, fd protoreflect.FieldDescriptor, accepted bool) []occurrence {
	for i := range list {
		if accepts(fd, list[i].wire) == accepted {
			continue
		}
		var some []occurrence
		for _, o := range list {
			if accepts(fd, o.wire) == accepted {
				some = append(some, o)
			}
		}
		return some
	}
	return list
}

// wholeRanges returns the byte ranges of occurrences, including their tags.
func wholeRanges(list []occurrence) []Range {
	var out []Range
	for _, o := range list[:min(len(list), maxRanges)] {
		out = append(out, o.whole)
	}
	return out
}

func contentRanges(list []occurrence) []Range {
	var out []Range
	for _, o := range list {
		out = append(out, o.in)
	}
	return out
}

// elements returns the byte ranges of the elements of a repeated field. The parameter "list"
// contains the places in the body at which the field occurs. If the field is packed, several
// elements are in one place. elements stops after the number of elements that pages show.
func (t *tree) elements(fd protoreflect.FieldDescriptor, list []occurrence) []occurrence {
	var out []occurrence
	for _, o := range list {
		if o.wire != protowire.BytesType || !descriptor.Packable(fd.Kind()) {
			out = append(out, o)
		} else {
			for at := o.in.From; at < o.in.To && len(out) < maxItems; {
				n := protowire.ConsumeFieldValue(1, descriptor.WireType(fd.Kind()), t.body[at:o.in.To])
				if n < 0 {
					break
				}
				out = append(out, occurrence{whole: Range{at, at + n}, in: Range{at, at + n}})
				at += n
			}
		}
		if len(out) >= maxItems {
			break
		}
	}
	return out
}

// entries groups the occurrences of a map field by the text of their keys. In the result, the field
// "in" of an occurrence is the range of the entry's value, without its key.
func (t *tree) entries(fd protoreflect.FieldDescriptor, list []occurrence) map[string][]occurrence {
	if len(list) == 0 {
		return nil
	}
	by := make(map[string][]occurrence, len(list))
	for _, o := range list {
		parts := t.occurrences([]Range{o.in})
		key := fd.MapKey().Default().MapKey().String()
		for _, k := range filterAccepted(parts[1], fd.MapKey(), true) {
			if b := t.body[k.in.From:k.in.To]; k.wire == protowire.BytesType {
				key = string(b)
			} else {
				key = wireText(fd.MapKey(), b)
			}
		}
		o.in = Range{o.in.To, o.in.To}
		for _, v := range filterAccepted(parts[2], fd.MapValue(), true) {
			o.in = v.in
		}
		by[key] = append(by[key], o)
	}
	return by
}

// deviation says how a field on the wire differs from the usual encoding of its type. It returns ""
// if it does not differ.
func deviation(fd protoreflect.FieldDescriptor, list []occurrence) string {
	switch {
	case fd.IsMap() || len(list) == 0:
	case !fd.IsList() && len(list) > 1 && fd.Message() != nil:
		return "in " + deadletter.Plural(len(list), "part", "parts") + " on the wire, merged"
	case !fd.IsList() && len(list) > 1:
		return deadletter.Plural(len(list), "time", "times") + " on the wire, the last counts"
	case fd.IsList() && descriptor.Packable(fd.Kind()):
		for _, o := range list {
			if packed := o.wire == protowire.BytesType; packed && !fd.IsPacked() {
				return "packed on the wire, which its type is not"
			} else if !packed && fd.IsPacked() {
				return "not packed on the wire, which its type is"
			}
		}
	}
	return ""
}
