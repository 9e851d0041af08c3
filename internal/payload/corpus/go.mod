// When the dependencies of the main module change: go -C internal/payload/corpus mod tidy
module github.com/deadletteroffice/dlo/internal/payload/corpus

go 1.26.0

require (
	cloud.google.com/go/aiplatform v1.120.0
	cloud.google.com/go/container v1.50.0
	cloud.google.com/go/dialogflow v1.80.0
	cloud.google.com/go/securitycenter v1.45.0
	github.com/deadletteroffice/dlo v0.0.0
	go.opentelemetry.io/proto/otlp v1.9.0
	go.temporal.io/api v1.60.0
	google.golang.org/protobuf v1.36.12
)

require (
	cloud.google.com/go/iam v1.11.0 // indirect
	cloud.google.com/go/longrunning v1.2.0 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.27.2 // indirect
	github.com/jhump/protoreflect v1.19.0 // indirect
	github.com/jhump/protoreflect/v2 v2.0.0-beta.1 // indirect
	github.com/klauspost/compress v1.20.1 // indirect
	github.com/petermattis/goid v0.0.0-20260113132338-7c7de50cc741 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto v0.0.0-20260319201613-d00831a3d3e7 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260831171406-18b4a7587f8a // indirect
	google.golang.org/grpc v1.85.0 // indirect
)

replace github.com/deadletteroffice/dlo => ../../..
