package payload

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// TrialContent is the content type of the bodies that Trial returns.
const TrialContent = `application/x-protobuf; messageType="` + deadletter.TrialType + `"`

// Trial returns the body of a letter that dlo makes for a trial.
func Trial(text, broker, by string, at time.Time) ([]byte, error) {
	md := descriptor.Own().Resolver().Message(deadletter.TrialType)
	m := dynamicpb.NewMessage(md)
	for name, value := range map[protoreflect.Name]string{"text": text, "broker": broker, "started_by": by} {
		m.Set(md.Fields().ByName(name), protoreflect.ValueOfString(value))
	}
	when := m.Mutable(md.Fields().ByName("at")).Message()
	fields := when.Descriptor().Fields()
	when.Set(fields.ByName("seconds"), protoreflect.ValueOfInt64(at.Unix()))
	when.Set(fields.ByName("nanos"), protoreflect.ValueOfInt32(int32(at.Nanosecond())))
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("the body of a trial: %w", err)
	}
	return body, nil
}
