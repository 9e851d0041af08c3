package system

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

const ordersSource = `syntax = "proto3";
package shop.v1;
// An order as it is placed.
message OrderPlaced {
  string order_id = 1; // unique
  int64 cents = 2;
  Address to = 3;
}
message Address { string street = 1; string city = 2; }
`

// ordersBody is the body of a message OrderPlaced, as ordersSource defines it.
const ordersBody = "\x0a\x0border-48213\x10\xb9\x60\x1a\x16\x0a\x0cHauptstr. 12\x12\x06Berlin"

// TestTypesOnTheCommandLine adds, shows and removes sets of types with the command line. A letter
// that could not be decoded before must be decoded after its set is added.
func TestTypesOnTheCommandLine(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, "", away+"schemas: {directory: "+filepath.Join(dir, "watched")+"}\n", nil).child
	ctx := t.Context()
	put := func(name, content string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	// "run" runs a command and checks that its output contains the wanted texts, on stdout or
	// stderr.
	run := func(code int, stdin string, args []string, wanted ...string) string {
		t.Helper()
		out, errs := p.dlo(ctx, code, stdin, args...)
		for _, w := range wanted {
			if !strings.Contains(out+errs, w) {
				t.Errorf("dlo %s: %q is missing in:\n%s%s", strings.Join(args, " "), w, out, errs)
			}
		}
		return out
	}
	types := func(args ...string) []string { return append([]string{"types"}, args...) }

	body := put("body.bin", ordersBody)
	at := time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)
	line, err := json.Marshal(map[string]any{
		"v":           1,
		"id":          deadletter.NewID(deadletter.SerialAt(at), 1),
		"state":       "dead",
		"inbox":       "dlo.letters",
		"exchange":    "dlo.dlx",
		"routing_key": "orders",
		"received_at": at,
		"origin": map[string]any{
			"broker": "main", "vhost": "/", "queue": "orders", "exchange": "events", "routing_key": "k",
		},
		"reason":     "rejected",
		"attempts":   0,
		"type":       "",
		"error":      "",
		"why":        "",
		"properties": map[string]any{},
		"headers":    map[string]any{},
		"body":       []byte(ordersBody),
	})
	if err != nil {
		t.Fatal(err)
	}
	run(0, string(line)+"\n", []string{"letters", "import", "-"})
	run(0, "", types("list"), "there are no sets")
	run(1, "", types("decode", body), "no types are registered")
	orders := put("orders.proto", ordersSource)
	eventually(t, "the letter is read without types", func() bool {
		return strings.Contains(run(0, "", types("add", "--dry-run", orders)), "of the newest 1 letters")
	})
	run(
		0, "", types("add", "--dry-run", orders), "set orders ",
		"2 types in 1 files, a new version (nothing is changed yet)", "+ shop.v1.OrderPlaced",
		"of the newest 1 letters that no type can decode, the set can decode 1",
	)
	run(0, "", types("list"), "there are no sets")
	run(0, "", types("add", orders), "+ shop.v1.Address")
	eventually(t, "the letter is read again", func() bool {
		return run(0, "", []string{"letters", "count", "-q", "type:shop.v1.OrderPlaced"}) == "1\n"
	})
	run(0, "", types("add", orders), "nothing new")

	// If people picked a type for a letter, dlo must use it instead of the type that matches the
	// body. People can remove the picked type again.
	var listed []struct{ ID string }
	if err := json.Unmarshal(
		[]byte(run(0, "", []string{"letters", "list", "-o", "json"})), &listed,
	); err != nil || len(listed) != 1 {
		t.Fatal(listed, err)
	}
	of := func(typ string) func() bool {
		return func() bool { return run(0, "", []string{"letters", "count", "-q", "type:" + typ}) == "1\n" }
	}
	letter := func(args ...string) []string { return append([]string{"letters", "type", listed[0].ID}, args...) }
	run(0, "", types("bindings"), "there are no bindings")
	run(2, "", types("bind", "orders", "shop.v1.Gone"), "is not registered")
	run(
		0, "", types("bind", "--key", "k", "--reason", "they said so", "orders", "shop.v1.Address"),
		"binding 1: queue orders with key k is decoded as shop.v1.Address",
	)
	eventually(t, "the letter is read by the binding", func() bool {
		return run(0, "", []string{"letters", "count", "-q", "read:binding"}) == "1\n" || run(0, "", []string{
			"letters", "count", "-q", "type:shop.v1.OrderPlaced",
		}) == "0\n"
	})
	run(
		0, "", letter("shop.v1.OrderPlaced", "--for", "group", "--reason", "a try"), "binding 2: group G-",
		"is decoded as shop.v1.OrderPlaced",
	)
	run(0, "", letter("-o", "jsonl", "shop.v1.OrderPlaced"), `"for":"letter"`)
	run(2, "", letter("shop.v1.OrderPlaced", "--for", "all"), "--for")
	run(2, "", []string{"letters", "type", "nonsense", "shop.v1.OrderPlaced"}, "")
	run(0, "", types("bindings"), "queue orders with key k", "they said so", "group G-", "letter "+listed[0].ID)
	run(0, "", types("bindings", "-o", "jsonl"), `"for":"binding"`, `"queue":"orders","key":"k"`)
	eventually(t, "the letter is read as it was picked", of("shop.v1.OrderPlaced"))
	for _, id := range []string{"1", "2", "3"} {
		run(0, "", types("unbind", id), "binding "+id+" is removed")
	}
	run(1, "", types("unbind", "1"), "there is no pick 1")
	eventually(t, "the letter is read by what it matches again", of("shop.v1.OrderPlaced"))
	run(
		0, strings.Replace(ordersSource, "int64 cents = 2;", "int64 cents = 2; string note = 7;", 1),
		types("add", "--name", "orders", "-"), "~ shop.v1.OrderPlaced", "    field 7 added: string note",
		"1 letters have a type that changes",
	)
	run(0, "", types("list"), "orders", "current", "older", "upload", "orders.proto")
	run(0, "", types("list", "CENTS"), "shop.v1.OrderPlaced", "cents", "int64")
	run(0, "", types("list", "nothing"), "no type or field")
	run(
		0, "", types("show", "OrderPlaced"), "// An order as it is placed.\nmessage OrderPlaced {", " // unique",
		"from set orders",
	)
	run(0, "", types("show", "orders"), "shop.v1.Address\nshop.v1.OrderPlaced\n")
	run(2, "", types("show", "Gone"), "no set defines this type")
	var source struct{ Type, Text string }
	if err := json.Unmarshal(
		[]byte(run(0, "", types("show", "-o", "json", "OrderPlaced"))), &source,
	); err != nil || source.Type != "shop.v1.OrderPlaced" {
		t.Errorf("%v: %+v", err, source)
	}
	run(0, "", types("match", body), "matched, of 2 types", "0.89", "shop.v1.OrderPlaced")
	run(
		0, ordersBody, types("decode", "-"), `"orderId": "order-48213"`, `"city": "Berlin"`,
		"shop.v1.OrderPlaced by matching",
	)
	run(0, "hello", types("decode", "-"), "hello")
	run(1, "hello", types("decode", "--type", "OrderPlaced", "-"), "it cannot be decoded as OrderPlaced")
	run(2, "", types("match", filepath.Join(dir, "gone")), "no such file")

	// The directory contains an invalid set and a valid set.
	put("tree/mail/a.proto", `syntax = "proto3"; package mail; import "mail/b.proto"; message Mail { Part part = 1; }`)
	put("tree/mail/b.proto", `syntax = "proto3"; package mail; message Part { string text = 1; }`)
	put("tree/README.md", "read me")
	put("tree/.git/x.proto", "hidden")
	run(
		0, "", types("add", "-o", "jsonl", filepath.Join(dir, "tree")), `"set":"tree"`,
		`"added":["mail.Mail","mail.Part"]`,
	)
	run(2, "", types("add", put("bad.proto", "message {")), "bad.proto: line 1")
	run(3, "", types("add", orders, filepath.Join(dir, "bad.proto")), "the sets before it are added")
	run(2, "", types("add", put("new.proto", "edition = \"2024\"; message X {}")), "upload a descriptor set")
	run(2, "", types("add", filepath.Join(dir, "gone.proto")), "no such file")
	run(2, "", types("add", t.TempDir()), "neither a .proto file")
	run(2, "", types("add", "--name", "x", orders, orders), "one file at a time")

	// The server watches the directory.
	run(0, "", types("list"), "tree", "orders")
	put("watched/w.proto", `syntax = "proto3"; message Watched { string name = 1; }`)
	eventually(
		t, "the file is found", func() bool { return strings.Contains(run(0, "", types("list", "Watched")), "protos") },
	)
	run(1, "", types("remove", "--yes", "protos"), "delete the file")
	put("watched/bad.binpb", "x")
	eventually(t, "the bad file is said", func() bool {
		_, errs := p.dlo(ctx, 0, "", "types", "list")
		return strings.Contains(errs, "bad.binpb: this is not a descriptor set")
	})

	run(0, "", types("remove", "--dry-run", "orders"), "set orders would be removed: 1 letters have one of its 2 types")
	run(2, "", types("remove", "orders"), "needs --yes")
	run(0, "", types("remove", "--yes", "orders"), "set orders is removed: 1 letters")
	run(1, "", types("remove", "--yes", "orders"), "there is no set of types orders")
	eventually(t, "the letter is read without its type", func() bool {
		return run(0, "", []string{"letters", "count", "-q", "type:shop.v1.OrderPlaced"}) == "0\n"
	})
	run(0, "", []string{
		"audit", "list", "--kind", "schema uploaded",
	}, "set orders ", "from orders.proto: 2 types; 2 types and 0 enums added, 0 changed, 0 removed")
	run(0, "", []string{"audit", "list", "--kind", "schema removed"}, "set orders with 2 types")
}

// TestTypesSurviveARestart checks old letters whose set exists only in the store. dlo must still
// decode them.
func TestTypesSurviveARestart(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	dir := t.TempDir()
	text := away + fmt.Sprintf("schemas: {directory: %s}\n", dir)
	p := newChild(t, "", text)
	p.Start("")
	if err := os.WriteFile(filepath.Join(dir, "orders.proto"), []byte(ordersSource), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the file is found", func() bool {
		out, _ := p.dlo(t.Context(), 0, "", "types", "list")
		return strings.Contains(out, "protos")
	})
	p.Stop()
	if err := os.WriteFile(
		filepath.Join(dir, "orders.proto"),
		[]byte(`syntax = "proto3"; package shop.v1; message OrderPlaced { int32 n = 9; }`), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	p.Start("")
	out, _ := p.dlo(t.Context(), 0, ordersBody, "types", "decode", "--type", "shop.v1.OrderPlaced", "-")
	if !strings.Contains(out, `"orderId": "order-48213"`) {
		t.Errorf("the old version is not tried: %s", out)
	}
}
