package payloadtest

import (
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

func Set(t testing.TB, files ...*descriptorpb.FileDescriptorProto) []byte {
	t.Helper()
	b, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: files})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func File(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
