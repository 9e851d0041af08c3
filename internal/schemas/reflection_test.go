package schemas_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
	v1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/schemas"
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

// serve starts a server whose reflection describes a service S with a message M. M has the given
// fields.
func serve(t *testing.T, address string, fields ...string) (string, *grpc.Server) {
	t.Helper()
	f := &descriptorpb.FileDescriptorProto{
		Name:        proto.String("s.proto"),
		Package:     proto.String("p"),
		Syntax:      proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M")}},
		Service: []*descriptorpb.ServiceDescriptorProto{
			{
				Name: proto.String("S"),
				Method: []*descriptorpb.MethodDescriptorProto{
					{Name: proto.String("Do"), InputType: proto.String(".p.M"), OutputType: proto.String(".p.M")},
				},
			},
		},
	}
	for i, name := range fields {
		f.MessageType[0].Field = append(f.MessageType[0].Field, &descriptorpb.FieldDescriptorProto{
			Name: proto.String(name), Number: proto.Int32(int32(i + 1)),
			Type:  descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		})
	}
	fd, err := protodesc.NewFile(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	files := new(protoregistry.Files)
	if err := files.RegisterFile(fd); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	v1.RegisterServerReflectionServer(server, reflection.NewServerV1(reflection.ServerOptions{
		Services:           services{"p.S"},
		DescriptorResolver: files,
	}))
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return l.Addr().String(), server
}

func TestServersAreAskedForTheirTypes(t *testing.T) {
	t.Parallel()
	address, server := serve(t, "127.0.0.1:0", "a")
	h := open(t, schemas.Options{Reflection: []string{address}})
	h.want("")
	if s := h.Status(); len(s.Servers) != 1 || !s.Servers[0].At.IsZero() || s.Servers[0].Address != address {
		t.Errorf("%+v", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Run(ctx) }()
	eventually(t, "the server answers", func() bool { return h.sets() == address+": p.M" })
	cancel()
	<-done
	if _, err := h.Remove(
		t.Context(), deadletter.Local, address, false,
	); !errors.Is(err, deadletter.ErrConflict) || !strings.Contains(err.Error(), "schemas.reflection") {
		t.Error(err)
	}
	server.Stop()
	h.Refresh(t.Context())
	h.want(address + ": p.M")
	if p := h.problems(); len(p) != 1 || !strings.HasPrefix(p[0], address+": ") {
		t.Errorf("%q", p)
	}
	h.restart()
	h.want(address + ": p.M")
	serve(t, address, "a", "b")
	h.Refresh(t.Context())
	if sets := h.Registry().Sets(); len(sets) != 2 || sets[0].Source != deadletter.SchemaReflection || sets[0].Detail != address || len(h.problems()) != 0 {
		t.Errorf("%+v, %q", sets, h.problems())
	}
	h.Refresh(t.Context())
	if got := h.audit(); !slices.Equal(got, []string{"schema loaded by dlo", "schema loaded by dlo"}) {
		t.Errorf("%q", got)
	}
	h.o.Reflection = nil
	h.restart()
	h.want("")
}
