package schemas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/jhump/protoreflect/grpcreflect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// readReflection reads the files of all services of a gRPC server, and their imports, by reflection
// (v1 or v1alpha). It checks the files that the server sends against the limits of a set, before it
// expands them. The context should have a deadline.
func readReflection(ctx context.Context, conn grpc.ClientConnInterface) (s *descriptor.Schema, err error) {
	defer func() {
		if recover() != nil { // hostile descriptors can cause a panic; see Decode
			s, err = nil, errors.New("internal error while reading what the server sent")
		}
	}()
	tap := &tap{ClientConnInterface: conn, caps: descriptor.NewCaps(), names: map[string]bool{}}
	client := grpcreflect.NewClientAuto(ctx, tap)
	client.AllowMissingFileDescriptors()
	defer client.Reset()
	services, err := client.ListServices()
	if err != nil {
		return nil, tap.stopReason(err)
	}
	if len(services) > descriptor.MaxFiles {
		return nil, fmt.Errorf(
			"%w: more than %s services", descriptor.ErrSchemaTooLarge, deadletter.Count(descriptor.MaxFiles),
		)
	}
	for _, name := range services {
		if strings.HasPrefix(name, "grpc.reflection.") {
			continue
		}
		// Some servers return files that do not list their imports. The reflection client cannot
		// link such a file and returns an error. This error is ignored, because Complete adds the
		// missing imports later.
		_, err := client.FileContainingSymbol(name)
		_, said := status.FromError(err) // the error comes from the server or the connection
		if err != nil && !grpcreflect.IsElementNotFoundError(err) && (said || tap.imports || tap.refused != nil) {
			return nil, tap.stopReason(err)
		}
	}
	if len(tap.content) == 0 {
		return nil, errors.New("it describes no service besides reflection")
	}
	set, err := descriptor.Complete(tap.content)
	if err != nil {
		return nil, err
	}
	return descriptor.ReadSet(set)
}

// tap is a connection that collects the files that pass through it. It stops if they exceed a
// limit.
type tap struct {
	grpc.ClientConnInterface
	caps    *descriptor.Caps
	names   map[string]bool
	content []byte // the files so far, as a serialised set
	imports bool   // at least one file lists its imports
	refused error
}

func (t *tap) NewStream(
	ctx context.Context, d *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	s, err := t.ClientConnInterface.NewStream(ctx, d, method, opts...)
	if err != nil {
		return nil, err
	}
	return tapped{s, t}, nil
}

type tapped struct {
	grpc.ClientStream
	tap *tap
}

func (s tapped) RecvMsg(m any) error {
	if s.tap.refused != nil { // send no further requests
		return io.EOF
	}
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	answer, ok := m.(proto.Message)
	if !ok {
		return nil
	}
	for _, file := range filesOf(answer.ProtoReflect()) {
		if err := s.tap.countFile(file); err != nil {
			s.tap.refused = err
			return err
		}
	}
	return nil
}

// countFile counts a file that the server has sent. If it is the first file with this name, the tap
// keeps it.
func (t *tap) countFile(file []byte) error {
	if err := t.caps.Take(file); err != nil {
		return err
	}
	if name := descriptor.FileName(file); !t.names[name] {
		t.names[name] = true
		t.imports = t.imports || descriptor.Imports(file)
		t.content = protowire.AppendTag(t.content, 1, protowire.BytesType)
		t.content = protowire.AppendBytes(t.content, file)
	}
	return nil
}

// filesOf returns the files in a response of v1 or v1alpha.
func filesOf(answer protoreflect.Message) (files [][]byte) {
	response := answer.Descriptor().Fields().ByName("file_descriptor_response")
	if response == nil || !answer.Has(response) {
		return nil
	}
	inner := answer.Get(response).Message()
	field := inner.Descriptor().Fields().ByName("file_descriptor_proto")
	if field == nil || !field.IsList() {
		return nil
	}
	list := inner.Get(field).List()
	for i := range list.Len() {
		files = append(files, list.Get(i).Bytes())
	}
	return files
}

// stopReason returns the reason why the tap stopped. If the tap has not stopped, it returns the
// given error.
func (t *tap) stopReason(err error) error {
	if t.refused != nil {
		return t.refused
	}
	text := deadletter.Cut(deadletter.Visible(err.Error()), 300)
	return errors.New(text)
}
