package payload

import (
	"fmt"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// unseen is a part of a message that its JSON omits: an unknown field, or the content of an Any of
// an unknown type.
type unseen struct {
	path string // names of fields, such as "items.[2]", without map keys, which may be masked
	num  protowire.Number
	any  string // type of the content of an Any
	size int    // bytes without tag and length
	raw  string
}

func (u *unseen) String() string {
	in := ""
	if u.path != "" {
		in = " in " + u.path
	}
	if u.any != "" {
		return "What the Any" + in + " holds, of " + u.any + " that is not registered,"
	}
	return fmt.Sprintf("Unknown field %d%s", u.num, in)
}

// unseenOf lists the parts of a message that its JSON omits. The caller must have scanned the
// bytes.
func unseenOf(t *descriptor.Resolver, b []byte, md protoreflect.MessageDescriptor) []unseen {
	w := &unseenWalk{types: t}
	w.message(b, md, "")
	return w.found
}

type unseenWalk struct {
	types *descriptor.Resolver
	found []unseen
}

func (w *unseenWalk) message(b []byte, md protoreflect.MessageDescriptor, path string) {
	var url, content []byte
	isAny := md.FullName() == "google.protobuf.Any"
	elements := make(map[protowire.Number]int)
	for _, p := range piecesOf(w.types, b, md) {
		fd := p.fd
		switch {
		case fd == nil:
			w.found = append(w.found, unseen{path: path, num: p.num, size: len(p.content), raw: string(p.raw)})
		case isAny && p.num == 1:
			url = p.content
		case isAny && p.num == 2:
			content = p.content
		case fd.Message() != nil:
			inner := path
			if !md.IsMapEntry() {
				inner = dotted(path, fieldName(fd))
			}
			if fd.IsList() {
				inner = dotted(inner, element(elements[p.num]))
				elements[p.num]++
			}
			w.message(p.content, fd.Message(), inner)
		}
	}
	if len(content) == 0 {
		return
	}
	if inner := w.types.AnyContent(string(url)); inner != nil {
		w.message(content, inner, path)
		return
	}
	name, _ := cut(visible(descriptor.TypeName(string(url)), ""), 100)
	w.found = append(w.found, unseen{path: path, any: name, size: len(content), raw: string(content)})
}

// The JSON of a message omits some of its parts, for example unknown fields. compareUnseen compares
// these parts before and after an edit. It returns the parts that were kept, and those that were
// lost.
func compareUnseen(before, after []unseen) (kept, lost []unseen) {
	id := func(u *unseen) string { return strconv.Itoa(int(u.num)) + u.any + "\x00" + u.raw }
	left := make(map[string]int)
	for i := range after {
		left[id(&after[i])]++
	}
	for i := range before {
		if k := id(&before[i]); left[k] > 0 {
			left[k]--
			kept = append(kept, before[i])
		} else {
			lost = append(lost, before[i])
		}
	}
	return kept, lost
}

const maxUnseen = 3 // if there are more unseen parts, they are only counted

// checksOf returns checks about the parts of a message that its JSON omits. They say which of these
// parts an edit has kept, and which it has lost.
func checksOf(kept, lost []unseen) (list []Check) {
	sum := func(of []unseen) (n int) {
		for i := range of {
			n += of[i].size
		}
		return n
	}
	if len(kept) > maxUnseen {
		list = append(list, Check{
			LevelOK,
			fmt.Sprintf(
				"%s that the JSON does not show are carried over, %s", deadletter.Count(len(kept))+" fields",
				deadletter.Bytes(sum(kept)),
			),
		})
	} else {
		for i := range kept {
			list = append(list, Check{
				LevelOK, fmt.Sprintf("%s is carried over, %s", &kept[i], deadletter.Bytes(kept[i].size)),
			})
		}
	}
	if len(lost) > maxUnseen {
		return append(list, Check{
			LevelWarn,
			fmt.Sprintf(
				"loss: %s that the JSON does not show (%s) are dropped, because what they were in is gone or has no clear place",
				deadletter.Count(len(lost))+" fields", deadletter.Bytes(sum(lost)),
			),
		})
	}
	for i := range lost {
		list = append(list, Check{
			LevelWarn,
			fmt.Sprintf(
				"loss: %s (%s) is dropped, because what it was in is gone or has no clear place", &lost[i],
				deadletter.Bytes(lost[i].size),
			),
		})
	}
	return list
}
