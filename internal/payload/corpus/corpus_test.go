// Package corpus measures matching on the types of public APIs. It is a module of its own, so that
// the product does not depend on them.
package corpus

import (
	"os"
	"slices"
	"strings"
	"sync"

	_ "cloud.google.com/go/aiplatform/apiv1/aiplatformpb"
	_ "cloud.google.com/go/container/apiv1/containerpb"
	_ "cloud.google.com/go/dialogflow/apiv2/dialogflowpb"
	_ "cloud.google.com/go/securitycenter/apiv1/securitycenterpb"
	_ "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	_ "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	_ "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	_ "go.temporal.io/api/export/v1"
	_ "go.temporal.io/api/operatorservice/v1"
	_ "go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// types is every linked type but those of google.protobuf, of one version of each API: with a
// second version most types would be there twice, which nothing on the wire can tell apart.
type types struct {
	registry *descriptor.Registry
	all      []protoreflect.MessageDescriptor
}

var load = sync.OnceValue(func() types {
	set := &descriptorpb.FileDescriptorSet{}
	var all []protoreflect.MessageDescriptor
	var walk func(protoreflect.MessageDescriptors)
	walk = func(list protoreflect.MessageDescriptors) {
		for i := range list.Len() {
			if md := list.Get(i); !md.IsMapEntry() {
				all = append(all, md)
				walk(md.Messages())
			}
		}
	}
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(f.Path(), "google/protobuf/") {
			walk(f.Messages())
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
		return true
	})
	b, err := proto.Marshal(set)
	if err != nil {
		panic(err)
	}
	r := descriptor.NewRegistry()
	if _, err := r.AddSet("corpus", b); err != nil {
		panic(err)
	}
	slices.SortFunc(all, func(a, b protoreflect.MessageDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
	return types{r, all}
})

var soak = os.Getenv("DLO_SOAK") != ""
