// Package corpus measures matching on the types of public APIs. It is a module of its own, so that
// the product does not depend on them.
package corpus

import (
	"os"
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
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/payload/corpus/trial"
)

// load has one version of each API: with a second one most types would be there twice, which
// nothing on the wire can tell apart.
var load = sync.OnceValue(func() trial.Types {
	return trial.Load(func(protoreflect.FullName) bool { return false })
})

var soak = os.Getenv("DLO_SOAK") != ""
