package payload

import (
	"os"
	"sync"
	"testing"

	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
)

// schemas returns a registry of testdata/schemas.
var schemas = sync.OnceValue(func() *descriptor.Registry {
	r := descriptor.NewRegistry()
	if _, err := r.AddSource("acme", os.DirFS("testdata/schemas")); err != nil {
		panic(err)
	}
	return r
})

// encode returns the bytes of a message. The parameters are its type, which testdata/schemas
// defines, and its JSON.
func encode(t testing.TB, typ, json string) []byte {
	t.Helper()
	defs, _ := schemas().Lookup(typ)
	if len(defs) == 0 {
		t.Fatalf("type %s is not in testdata/schemas", typ)
	}
	m := dynamicpb.NewMessage(defs[0].Desc)
	if err := (protojson.UnmarshalOptions{
		Resolver: defs[0].Types, AllowPartial: true,
	}).Unmarshal([]byte(json), m); err != nil {
		t.Fatal(err)
	}
	b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sample(t testing.TB) []byte { return payloadtest.Sample(t) }

// nodeAt returns the node at a path of names.
func nodeAt(t testing.TB, d *Document, path ...string) Node {
	t.Helper()
	nodes := d.Fields
	var found Node
next:
	for _, name := range path {
		for _, n := range nodes {
			if n.Name == name {
				found, nodes = n, n.Children
				continue next
			}
		}
		t.Fatalf("no node %q in %v; there are %+v", name, path, nodes)
	}
	return found
}
