package payload

import (
	"errors"
	"testing"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// compareWithDecoder scans a body and decodes it, and compares the two results.
func compareWithDecoder(t *testing.T, name string, body []byte) {
	t.Helper()
	defs, _ := schemas().Lookup(name)
	s := &descriptor.Scan{Budget: budget.NewBudget(), Types: defs[0].Types}
	scanned := s.Run(body, defs[0].Desc)
	if tooLarge := (*budget.TooLargeError)(nil); errors.As(scanned, &tooLarge) {
		return
	}
	m := dynamicpb.NewMessage(defs[0].Desc)
	decoded := (proto.UnmarshalOptions{Resolver: defs[0].Types, AllowPartial: true}).Unmarshal(body, m)
	if scanned != nil && decoded == nil {
		t.Errorf("the decoder takes what the scan refuses: %v", scanned)
	}
	if scanned == nil && decoded == nil {
		if got := unknownBytes(m); got > s.UnknownBytes {
			t.Errorf("%d unknown bytes, the scan saw %d", got, s.UnknownBytes)
		}
	}
}

func unknownBytes(m protoreflect.Message) int64 {
	n := int64(len(m.GetUnknown()))
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				n += unknownBytes(v.Message())
				return true
			})
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				n += unknownBytes(v.List().Get(i).Message())
			}
		case !fd.IsMap() && !fd.IsList() && fd.Message() != nil:
			n += unknownBytes(v.Message())
		}
		return true
	})
	return n
}
