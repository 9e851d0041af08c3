// Package corpus tests how well matching works with the types of public APIs. It is a separate
// module, so that the product does not depend on these APIs.
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

// load returns the types of several public APIs, in one version of each API. In two versions of an
// API, most types would be so similar that no body could show which version it has.
var load = sync.OnceValue(func() trial.Types {
	return trial.Load(func(protoreflect.FullName) bool { return false })
})

var soak = os.Getenv("DLO_SOAK") != ""
