package schemas

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/reflection"
	v1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// services lists the services that the reflection of a server reports.
type services []string

func (s services) GetServiceInfo() map[string]grpc.ServiceInfo {
	info := map[string]grpc.ServiceInfo{}
	for _, name := range s {
		info[name] = grpc.ServiceInfo{}
	}
	return info
}

// dial starts a gRPC server and returns a connection to it.
func dial(t *testing.T, register func(*grpc.Server)) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); server.Stop(); <-done })
	return conn
}

func withServices(t *testing.T) (files *protoregistry.Files) {
	t.Helper()
	s, err := descriptor.ReadUpload(t.Context(), "x.zip", payloadtest.Zipped(t, map[string][]byte{
		"shop/order.proto": []byte(
			`syntax = "proto3"; package shop; import "shop/item.proto"; message Order { Item item = 1; } service Orders { rpc Place(Order) returns (Item); }`,
		),
		"shop/item.proto": []byte(
			`syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto"; message Item { google.protobuf.Timestamp at = 1; }`,
		),
		"mail.proto": []byte(
			`syntax = "proto3"; package mail; message Mail { string to = 1; } service Mails { rpc Send(Mail) returns (Mail); }`,
		),
		"unserved.proto": []byte(`syntax = "proto3"; package unserved; message Unserved {}`),
	}))
	if err != nil {
		t.Fatal(err)
	}
	content, err := s.Content()
	if err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(content, &set); err != nil {
		t.Fatal(err)
	}
	if files, err = (protodesc.FileOptions{AllowUnresolvable: true}).NewFiles(&set); err != nil {
		t.Fatal(err)
	}
	return files
}

func TestReadReflection(t *testing.T) {
	t.Parallel()
	files := withServices(t)
	o := reflection.ServerOptions{
		Services: services{
			"shop.Orders", "mail.Mails", "grpc.reflection.v1.ServerReflection", "not.Described",
		},
		DescriptorResolver: files,
	}
	for name, register := range map[string]func(*grpc.Server){
		"v1": func(s *grpc.Server) { v1.RegisterServerReflectionServer(s, reflection.NewServerV1(o)) },
		"v1alpha": func(s *grpc.Server) {
			grpc_reflection_v1alpha.RegisterServerReflectionServer(s, reflection.NewServer(o))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, err := readReflection(ctx, dial(t, register))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.Types(), " "); got != "mail.Mail shop.Item shop.Order" {
				t.Errorf("types %s", got)
			}
			if content, err := s.Content(); err != nil || len(content) == 0 {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	none := reflection.ServerOptions{
		Services:           services{"grpc.reflection.v1.ServerReflection"},
		DescriptorResolver: files,
	}
	if _, err := readReflection(
		ctx, dial(t, func(s *grpc.Server) { v1.RegisterServerReflectionServer(s, reflection.NewServerV1(none)) }),
	); err == nil || !strings.Contains(err.Error(), "no service") {
		t.Error(err)
	}
	if _, err := readReflection(ctx, dial(t, func(*grpc.Server) {})); err == nil {
		t.Error("a server without reflection is read")
	}
}

// endless is a reflection server that responds to every request with another file. For example,
// each file may import the next one.
type endless struct {
	v1.UnimplementedServerReflectionServer
	file func(asked string) []byte
}

func (e endless) ServerReflectionInfo(stream v1.ServerReflection_ServerReflectionInfoServer) error {
	for {
		q, err := stream.Recv()
		if err != nil {
			return nil
		}
		a := &v1.ServerReflectionResponse{
			OriginalRequest: q,
			MessageResponse: &v1.ServerReflectionResponse_FileDescriptorResponse{
				FileDescriptorResponse: &v1.FileDescriptorResponse{
					FileDescriptorProto: [][]byte{e.file(q.GetFileByFilename() + q.GetFileContainingSymbol())},
				},
			},
		}
		if _, ok := q.MessageRequest.(*v1.ServerReflectionRequest_ListServices); ok {
			var list []*v1.ServiceResponse
			for i := range 1000 {
				list = append(list, &v1.ServiceResponse{Name: fmt.Sprintf("p.S%d", i)})
			}
			a.MessageResponse = &v1.ServerReflectionResponse_ListServicesResponse{
				ListServicesResponse: &v1.ListServiceResponse{Service: list},
			}
		}
		if stream.Send(a) != nil {
			return nil
		}
	}
}

func TestReflectionOfAHostileServer(t *testing.T) {
	var number atomic.Int64 // streams may send requests at the same time
	next := func(more ...byte) []byte {
		n := number.Add(1)
		return append(
			append(
				payloadtest.LengthPrefixed(1, fmt.Appendf(nil, "f%d.proto", n)),
				payloadtest.LengthPrefixed(3, fmt.Appendf(nil, "f%d.proto", n+1))...,
			),
			more...,
		)
	}
	for _, tt := range []struct {
		name  string
		large bool
		file  func(asked string) []byte
	}{
		{"imports without end", false, func(string) []byte { return next() }},
		{"types without end", true, func(string) []byte { // each service has its own file
			n := number.Add(1)
			b := payloadtest.LengthPrefixed(1, fmt.Appendf(nil, "g%d.proto", n))
			for i := range 5_000 {
				b = append(
					b,
					payloadtest.LengthPrefixed(4, payloadtest.LengthPrefixed(1, fmt.Appendf(nil, "T%d_%d", n, i)))...,
				)
			}
			return b
		}},
		{"empty enum values", true, func(string) []byte {
			return next(payloadtest.LengthPrefixed(5, []byte(strings.Repeat("\x12\x00", 1_500_000)))...)
		}},
		{"many types", true, func(string) []byte { return next([]byte(strings.Repeat("\x22\x00", 60_000))...) }},
		{"deep types", true, func(string) []byte {
			return next(payloadtest.LengthPrefixed(4, payloadtest.Nested(nil, 0x1a, 5000))...)
		}},
		{"noise", false, func(string) []byte { return []byte("\xff\xff\xff") }},
		{"nothing", false, func(string) []byte { return nil }},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		conn := dial(t, func(s *grpc.Server) { v1.RegisterServerReflectionServer(s, endless{file: tt.file}) })
		var err error
		used := payloadtest.Allocated(func() { _, err = readReflection(ctx, conn) })
		cancel()
		if err == nil || tt.large && !errors.Is(err, descriptor.ErrSchemaTooLarge) ||
			errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if used > 128<<20 {
			t.Errorf("%s: allocated %s", tt.name, deadletter.Bytes(int(used)))
		}
	}
}

// packaged is a reflection server that responds like the package @grpc/reflection for Node, which
// gets its files from proto-loader. It sends one file for each package, all in one response. The
// files have no imports, and their type names are as short as possible.
type packaged struct {
	v1.UnimplementedServerReflectionServer
	files [][]byte
}

func (p packaged) ServerReflectionInfo(stream v1.ServerReflection_ServerReflectionInfoServer) error {
	for {
		q, err := stream.Recv()
		if err != nil {
			return nil
		}
		a := &v1.ServerReflectionResponse{OriginalRequest: q}
		switch q.MessageRequest.(type) {
		case *v1.ServerReflectionRequest_ListServices:
			a.MessageResponse = &v1.ServerReflectionResponse_ListServicesResponse{
				ListServicesResponse: &v1.ListServiceResponse{Service: []*v1.ServiceResponse{{Name: "shop.Orders"}}},
			}
		case *v1.ServerReflectionRequest_FileContainingSymbol:
			a.MessageResponse = &v1.ServerReflectionResponse_FileDescriptorResponse{
				FileDescriptorResponse: &v1.FileDescriptorResponse{FileDescriptorProto: p.files},
			}
		default:
			a.MessageResponse = &v1.ServerReflectionResponse_ErrorResponse{
				ErrorResponse: &v1.ErrorResponse{ErrorCode: 5, ErrorMessage: "no such file"},
			}
		}
		if stream.Send(a) != nil {
			return nil
		}
	}
}

func TestReflectionWithoutImports(t *testing.T) {
	t.Parallel()
	field := func(name string, number int32, typ string) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name: &name, Number: &number, TypeName: &typ, Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
	}
	p := packaged{}
	for _, f := range []*descriptorpb.FileDescriptorProto{
		{
			Name: proto.String("shop.proto"), Package: proto.String("shop"), Syntax: proto.String("proto3"),
			MessageType: []*descriptorpb.DescriptorProto{
				{Name: proto.String("Order"), Field: []*descriptorpb.FieldDescriptorProto{
					field("at", 1, "google.protobuf.Timestamp"), field("line", 2, "Line"),
					field("to", 3, "common.Address"), field("gone", 4, "other.Gone"),
					field("any", 5, "google.protobuf.Any"),
				}, NestedType: []*descriptorpb.DescriptorProto{{Name: proto.String("Line")}}},
			},
			Service: []*descriptorpb.ServiceDescriptorProto{
				{
					Name: proto.String("Orders"),
					Method: []*descriptorpb.MethodDescriptorProto{
						{
							Name: proto.String("Place"), InputType: proto.String("Order"),
							OutputType: proto.String("Order"),
						},
					},
				},
			},
		},
		{
			Name:        proto.String("shop_common.proto"),
			Package:     proto.String("shop.common"),
			Syntax:      proto.String("proto3"),
			MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Address")}},
		},
		{
			Name:        proto.String("google_protobuf.proto"),
			Package:     proto.String("google.protobuf"),
			Syntax:      proto.String("proto3"),
			MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Timestamp")}},
		},
	} {
		b, err := proto.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		p.files = append(p.files, b)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := readReflection(ctx, dial(t, func(s *grpc.Server) { v1.RegisterServerReflectionServer(s, p) }))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Types(), " "); got != "shop.Order shop.Order.Line shop.common.Address" {
		t.Errorf("types %s", got)
	}
	r := descriptor.NewRegistry()
	r.Add(deadletter.SchemaVersion{Name: "shop"}, s)
	defs, _ := r.Lookup("shop.Order")
	if len(defs) != 1 {
		t.Fatal(defs)
	}
	for name, want := range map[string]string{
		"at": "google.protobuf.Timestamp", "line": "shop.Order.Line", "to": "shop.common.Address", "gone": "other.Gone",
		"any": "google.protobuf.Any",
	} {
		md := defs[0].Desc.Fields().ByName(protoreflect.Name(name)).Message()
		if string(md.FullName()) != want || md.IsPlaceholder() != (name == "gone") {
			t.Errorf("%s is %s, placeholder %t", name, md.FullName(), md.IsPlaceholder())
		}
	}
}
