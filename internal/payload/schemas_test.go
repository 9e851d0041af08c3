package payload

import (
	"encoding/hex"
	"os"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
)

// schemas returns a registry of testdata/schemas.
var schemas = sync.OnceValue(func() *Registry {
	r := NewRegistry()
	if _, err := r.AddSource("acme", os.DirFS("testdata/schemas")); err != nil {
		panic(err)
	}
	return r
})

// encode makes a message of a type of schemas from its JSON.
func encode(t testing.TB, typ, json string) []byte {
	t.Helper()
	defs, _ := schemas().find(typ)
	if len(defs) == 0 {
		t.Fatalf("type %s is not in testdata/schemas", typ)
	}
	m := dynamicpb.NewMessage(defs[0].desc)
	if err := (protojson.UnmarshalOptions{Resolver: defs[0].types, AllowPartial: true}).Unmarshal([]byte(json), m); err != nil {
		t.Fatal(err)
	}
	b, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sample is the letter that the documentation shows: 157 bytes, one unknown field.
func sample(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(`
		0a0e7265715f396632633431643037 62 10d5f802 1a22 0a10 64616e61406578616d706c652e636f6d
		120e44616e6120576869746669656c64 2213 0a0a77656c636f6d655f7633 1205656e2d4742
		2a12 0a0a66697273745f6e616d65120444616e61 2a0c 0a04706c616e12047465616d 3002
		3a0b 089edcffd70610 80a89763 4a10 5b1e7ac09d3f44e2a6b18c20f7e9d413
		aa010a0a056261747368 10d20f`), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// at returns the node at a path of names.
func at(t testing.TB, d *Document, path ...string) Node {
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
