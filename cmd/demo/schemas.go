package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	//lint:ignore SA1019 its v2 is a beta; only this file uses it
	"github.com/jhump/protoreflect/desc/protoparse"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// These are the message types that the shop sends.
const (
	customerRegistered = "acme.shop.v1.CustomerRegistered"
	emailRequested     = "acme.notify.v1.EmailRequested"
	smsRequested       = "acme.notify.v1.SmsRequested"
)

//go:embed schemas
var schemaFiles embed.FS

// schemas maps the full name of a message type to its descriptor. The demo reads the types from its
// embedded folder "schemas", and the dlo that it starts reads a copy of that folder.
type schemas map[string]protoreflect.MessageDescriptor

// loadSchemas parses the .proto files that are embedded in the program.
func loadSchemas() (schemas, error) {
	root, err := fs.Sub(schemaFiles, "schemas")
	if err != nil {
		return nil, err
	}
	var names []string
	err = fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	parser := protoparse.Parser{Accessor: func(name string) (io.ReadCloser, error) { return root.Open(name) }}
	files, err := parser.ParseFiles(names...)
	if err != nil {
		return nil, fmt.Errorf("parse the demo's schemas: %w", err)
	}
	types := schemas{}
	for _, f := range files {
		list := f.UnwrapFile().Messages()
		for i := range list.Len() {
			types[string(list.Get(i).FullName())] = list.Get(i)
		}
	}
	return types, nil
}

// encode returns the protobuf body of a message. The parameter "fields" holds the values in their
// JSON form.
func (s schemas) encode(typ string, fields map[string]any) ([]byte, error) {
	descriptor, ok := s[typ]
	if !ok {
		return nil, fmt.Errorf("encode %s: there is no such type", typ)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", typ, err)
	}
	m := dynamicpb.NewMessage(descriptor)
	if err := protojson.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("encode %s: %w", typ, err)
	}
	// the order of the fields is by field number, as in generated code
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// decode decodes a body as a message of the given type.
func (s schemas) decode(typ string, body []byte) (fields, error) {
	descriptor, ok := s[typ]
	if !ok {
		return fields{}, fmt.Errorf("type %q is not known here", typ)
	}
	m := dynamicpb.NewMessage(descriptor)
	if err := proto.Unmarshal(body, m); err != nil {
		return fields{}, fmt.Errorf("the body is not a valid %s", typ)
	}
	return fields{m}, nil
}

// fields gives access to the fields of a decoded message by their names. If the type has no field
// of that name, the value is empty.
type fields struct{ m protoreflect.Message }

func (f fields) value(name protoreflect.Name) (protoreflect.Value, bool) {
	d := f.m.Descriptor().Fields().ByName(name)
	if d == nil {
		return protoreflect.Value{}, false
	}
	return f.m.Get(d), true
}

func (f fields) text(name protoreflect.Name) string {
	v, ok := f.value(name)
	if !ok {
		return ""
	}
	return v.String()
}

func (f fields) number(name protoreflect.Name) uint64 {
	v, ok := f.value(name)
	if !ok {
		return 0
	}
	return v.Uint()
}

// message returns the fields of a nested message.
func (f fields) message(name protoreflect.Name) fields {
	v, ok := f.value(name)
	if !ok {
		return f
	}
	return fields{v.Message()}
}

// writeSchemas writes the .proto files into the directory "dir", where dlo reads them.
func writeSchemas(dir string) error {
	root, err := fs.Sub(schemaFiles, "schemas")
	if err != nil {
		return err
	}
	return fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if e.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	})
}
