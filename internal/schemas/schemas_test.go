package schemas_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
	v1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/schemas"
	"github.com/deadletteroffice/dlo/internal/store"
)

// house is a library over a real store.
type house struct {
	*schemas.Library
	t     *testing.T
	store *store.Store
	path  string
	o     schemas.Options
}

func open(t *testing.T, o schemas.Options) *house {
	t.Helper()
	h := &house{t: t, path: filepath.Join(t.TempDir(), "dlo.db"), o: o}
	h.start()
	t.Cleanup(func() { h.store.Close() })
	return h
}

func (h *house) start() {
	h.t.Helper()
	var err error
	if h.store, err = store.Open(context.Background(), h.path, store.Options{}); err != nil {
		h.t.Fatal(err)
	}
	h.Library = schemas.New(h.store, h.o)
	if err := h.Load(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) restart() {
	h.t.Helper()
	if err := h.store.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.start()
}

// sets lists the current versions with their types: "name: A B".
func (h *house) sets() string {
	var list []string
	for _, s := range h.Registry().Sets() {
		if s.Current {
			list = append(list, s.Name+": "+strings.Join(s.Types, " "))
		}
	}
	return strings.Join(list, "; ")
}

func (h *house) want(sets string) {
	h.t.Helper()
	if got := h.sets(); got != sets {
		h.t.Errorf("sets %q, want %q", got, sets)
	}
}

// audit lists what was audited, newest first.
func (h *house) audit() (list []string) {
	h.t.Helper()
	entries, _, err := h.store.Audit(context.Background(), deadletter.AuditFilter{Limit: 100})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Kind+" by "+e.Actor)
	}
	return list
}

func source(text string) []byte { return []byte("syntax = \"proto3\";\n" + text) }

func (h *house) upload(name string, text string) (payload.Change, deadletter.SchemaEffect) {
	h.t.Helper()
	c, e, err := h.Upload(context.Background(), deadletter.Local, name, source(text), "x.proto", false)
	if err != nil {
		h.t.Fatal(err)
	}
	return c, e
}

func TestUpload(t *testing.T) {
	t.Parallel()
	h := open(t, schemas.Options{})
	ctx := context.Background()
	c, e, err := h.Upload(ctx, deadletter.Local, "", source(`package p; message M { string a = 1; }`), `protos/shop.proto`, true)
	if err != nil || c.Set != "shop" || len(c.Added) != 1 || e != (deadletter.SchemaEffect{Types: 1, Files: 1}) {
		t.Errorf("%+v, %+v, %v", c, e, err)
	}
	h.want("")
	h.upload("shop", `package p; message M { string a = 1; }`)
	c, _ = h.upload("shop", `package p; message M { string a = 1; int32 b = 2; } message N {}`)
	if len(c.Changed) != 1 || c.Known != "" {
		t.Errorf("%+v", c)
	}
	if c, _ = h.upload("shop", `package p; message M { string a = 1; int32 b = 2; } message N {}`); c.Known != payload.KnownCurrent {
		t.Errorf("%+v", c)
	}
	h.want("shop: p.M p.N")
	if got := h.audit(); !slices.Equal(got, []string{"schema uploaded by local", "schema uploaded by local"}) {
		t.Errorf("%q", got)
	}
	h.restart()
	h.want("shop: p.M p.N")
	if sets := h.Registry().Sets(); len(sets) != 2 || sets[0].By != "local" || sets[0].Detail != "x.proto" || sets[0].Source != deadletter.SchemaUpload || sets[0].At.IsZero() {
		t.Errorf("%+v", sets)
	}
	if c, _ = h.upload("shop", `package p; message M { string a = 1; }`); c.Known != payload.KnownOlder || len(c.Removed) != 1 {
		t.Errorf("%+v", c)
	}
	h.restart()
	h.want("shop: p.M")
}

func TestUploadRefuses(t *testing.T) {
	t.Parallel()
	h := open(t, schemas.Options{})
	for _, tt := range []struct {
		name, set, file string
		content         []byte
		by              deadletter.Principal
		want            error
		text            string
	}{
		{"noise", "a", "x.binpb", []byte("\x08\x01"), deadletter.Local, deadletter.ErrInvalid, "buf build"},
		{"nothing", "a", "x.binpb", nil, deadletter.Local, deadletter.ErrInvalid, "empty"},
		{"no types", "a", "x.proto", source(`enum E { NONE = 0; }`), deadletter.Local, deadletter.ErrInvalid, "no message type"},
		{"no name", "", "", source(`message M {}`), deadletter.Local, deadletter.ErrInvalid, "needs a name"},
		{"an odd name", "a\u202eb", "x.proto", source(`message M {}`), deadletter.Local, deadletter.ErrInvalid, "visible text"},
		{"a long name", strings.Repeat("a", 201), "x.proto", source(`message M {}`), deadletter.Local, deadletter.ErrInvalid, "200 bytes"},
		{"somebody", "a", "x.proto", source(`message M {}`), deadletter.Principal{Name: "eve"}, deadletter.ErrForbidden, "may not change types"},
	} {
		_, _, err := h.Upload(context.Background(), tt.by, tt.set, tt.content, tt.file, false)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	h.want("")
	if got := h.audit(); got != nil {
		t.Errorf("%q", got)
	}
}

// failing is a store that keeps nothing.
type failing struct{ *store.Store }

var errFull = errors.New("full")

func (failing) AddSchemaVersion(context.Context, deadletter.SchemaVersion, string, deadletter.Reread) (deadletter.SchemaVersion, error) {
	return deadletter.SchemaVersion{}, errFull
}

func (failing) RemoveSchema(context.Context, string, string, string, deadletter.Reread) error {
	return errFull
}

func TestNothingCountsThatIsNotKept(t *testing.T) {
	t.Parallel()
	h := open(t, schemas.Options{})
	h.upload("a", `message A {}`)
	l := schemas.New(failing{h.store}, schemas.Options{})
	if err := l.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if _, _, err := l.Upload(t.Context(), deadletter.Local, name, source(`message B {}`), "b.proto", false); !errors.Is(err, errFull) {
			t.Error(err)
		}
	}
	if _, err := l.Remove(t.Context(), deadletter.Local, "a", false); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if got := l.Registry().Types(); !slices.Equal(got, []string{"A"}) {
		t.Errorf("%q", got)
	}
}

// receive stores a letter and classifies it as somebody without types does, or as one of a type.
func (h *house) receive(n int64, body string, typ string, reading deadletter.Reading) {
	h.t.Helper()
	ctx := context.Background()
	a := deadletter.Arrival{Exchange: "x", RoutingKey: "q", Tag: 1, Body: []byte(body), Properties: deadletter.Properties{MessageID: fmt.Sprint(n)}}
	print, err := a.Print()
	if err != nil {
		h.t.Fatal(err)
	}
	a.Fingerprint = print
	w := deadletter.Window{Session: 1, Number: n, Broker: "main", VHost: "/", Inbox: "i", Uncertain: deadletter.UncertainHold, Horizon: time.Minute, HorizonRows: 1000, Arrivals: []deadletter.Arrival{a}}
	r, err := h.store.Receive(ctx, w)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.store.Settle(ctx, r.Window); err != nil {
		h.t.Fatal(err)
	}
	letters, err := h.store.ClaimReceived(ctx, 10)
	if err != nil || len(letters) != 1 {
		h.t.Fatal(len(letters), err)
	}
	err = h.store.Classify(ctx, []deadletter.Classified{{
		Letter: letters[0].ID, To: deadletter.ClassifiedDead, Origin: deadletter.Origin{Broker: "main", VHost: "/", Queue: "q"}, Type: typ, Reading: reading, GroupKey: [32]byte{1}, GroupTitle: "g", GroupVersion: 1,
	}})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestAnUploadSaysWhatItReaches(t *testing.T) {
	t.Parallel()
	var h *house
	changed := 0
	h = open(t, schemas.Options{
		Decoder: func() *payload.Decoder {
			return &payload.Decoder{Types: h.Registry(), Bindings: []payload.Binding{{Queue: "q", Type: "p.M"}}}
		},
		Untyped: func(ctx context.Context, n int) ([]deadletter.Letter, error) { return h.store.Untyped(ctx, n) },
		Between: func(change func() error) error { changed++; return change() },
	})
	h.receive(1, "\x0a\x05hello", "", deadletter.ReadUnknown)
	h.receive(2, "\xff\xff", "", deadletter.ReadUnknown)
	h.receive(3, "\x0a\x05hello", "p.Outer", deadletter.ReadByProperty)
	const outer = ` message Outer { repeated M m = 1; }`
	ctx := context.Background()
	_, e, err := h.Upload(ctx, deadletter.Local, "a", source(`package p; message M { string a = 1; }`+outer), "a.proto", true)
	if err != nil || e != (deadletter.SchemaEffect{Types: 2, Files: 1, Letters: 1, Sampled: 2, Readable: 1}) || changed != 0 {
		t.Errorf("%+v, %v, changed %d", e, err, changed)
	}
	h.upload("a", `package p; message M { string a = 1; }`+outer)
	if r, err := h.store.ReadingAnew(ctx); err != nil || !strings.HasPrefix(r.Why, "set a ") || changed != 1 {
		t.Errorf("%+v, %v, changed %d", r, err, changed)
	}
	for more := true; more; {
		if more, err = h.store.ListUnread(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if letters, err := h.store.ClaimUnread(ctx, 10); err != nil || len(letters) != 3 {
		t.Errorf("%d letters are read anew, %v", len(letters), err)
	}
	// M changes, and with it what Outer holds.
	_, e, err = h.Upload(ctx, deadletter.Local, "a", source(`package p; message M { string a = 1; string b = 2; }`+outer), "a.proto", true)
	if err != nil || e.Letters != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := h.Remove(ctx, deadletter.Local, "a", true); err != nil || e.Letters != 1 || e.Types != 2 {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := open(t, schemas.Options{Directory: dir})
	ctx := context.Background()
	h.upload("a", `message A {}`)
	h.upload("a", `message A {} message B {}`)
	write(t, dir, "d.proto", source(`message D {}`))
	h.Refresh(ctx)
	h.want("a: A B; protos: D")
	if _, err := h.Remove(ctx, deadletter.Principal{Name: "eve"}, "a", false); !errors.Is(err, deadletter.ErrForbidden) {
		t.Error(err)
	}
	if _, err := h.Remove(ctx, deadletter.Local, "gone", false); !errors.Is(err, deadletter.ErrNotFound) {
		t.Error(err)
	}
	if _, err := h.Remove(ctx, deadletter.Local, "protos", false); !errors.Is(err, deadletter.ErrConflict) || !strings.Contains(err.Error(), "delete the file") {
		t.Error(err)
	}
	if _, _, err := h.Upload(ctx, deadletter.Local, "protos", source(`message A {}`), "", false); !errors.Is(err, deadletter.ErrConflict) || !strings.Contains(err.Error(), "choose another name") {
		t.Error(err)
	}
	if _, err := h.Remove(ctx, deadletter.Local, "a", true); err != nil {
		t.Error(err)
	}
	h.want("a: A B; protos: D")
	if _, err := h.Remove(ctx, deadletter.Local, "a", false); err != nil {
		t.Error(err)
	}
	h.want("protos: D")
	h.restart()
	h.want("protos: D")
	if got := h.audit(); got[0] != "schema removed by local" {
		t.Errorf("%q", got)
	}
	h.upload("a", `message A {}`)
	if sets := h.Registry().Sets(); len(sets) != 2 {
		t.Errorf("what is uploaded again brings its other versions along: %+v", sets)
	}
}

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func zipped(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write(content)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.proto", source(`message A { string a = 1; }`))
	write(t, dir, "z.zip", zipped(t, "z.proto", source(`message Z {}`)))
	h := open(t, schemas.Options{Directory: dir})
	ctx := context.Background()
	h.want("protos: A; z.zip/protos: Z")
	write(t, dir, "a.proto", source(`message A { string a = 1; int32 b = 2; }`))
	h.Refresh(ctx)
	if sets := h.Registry().Sets(); len(sets) != 3 {
		t.Errorf("the old version is not kept: %+v", sets)
	}
	// Half a file, and one that never was any good: what was there stays.
	version := h.Registry().Sets()[0].Version
	write(t, dir, "a.proto", source(`message A { string a = 1; int32`))
	write(t, dir, "z.zip", []byte("PK\x03\x04half"))
	write(t, dir, "bad.binpb", []byte("\xff"))
	h.Refresh(ctx)
	h.want("protos: A; z.zip/protos: Z")
	if h.Registry().Sets()[0].Version != version {
		t.Error("half a file makes a version")
	}
	problems := strings.Join(h.Problems(), "\n")
	for _, want := range []string{"a.proto: line 2", "z.zip: ", "bad.binpb: this is no descriptor set"} {
		if !strings.Contains(problems, want) {
			t.Errorf("%q is missing in\n%s", want, problems)
		}
	}
	h.restart() // the stored version is read, and stays
	h.want("protos: A; z.zip/protos: Z")
	write(t, dir, "a.proto", source(`message A { string a = 1; }`))
	if err := os.Remove(filepath.Join(dir, "z.zip")); err != nil {
		t.Fatal(err)
	}
	h.Refresh(ctx)
	h.want("protos: A; z.zip/protos: Z") // nothing is removed while a file is bad
	if err := os.Remove(filepath.Join(dir, "bad.binpb")); err != nil {
		t.Fatal(err)
	}
	h.Refresh(ctx)
	h.want("protos: A")
	if p := h.Problems(); p != nil {
		t.Errorf("%q", p)
	}
	if got := h.audit(); !slices.Equal(got, []string{"schema removed by dlo", "schema loaded by dlo", "schema loaded by dlo", "schema loaded by dlo", "schema loaded by dlo"}) {
		t.Errorf("%q", got)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	h.Refresh(ctx)
	h.want("protos: A")
	if p := h.Problems(); len(p) != 1 || !strings.Contains(p[0], "is gone") {
		t.Errorf("%q", p)
	}
	h.restart()
	h.want("protos: A")
	h.o.Directory = ""
	h.restart()
	h.want("")
}

func TestADirectoryAndAnUploadOfOneName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := open(t, schemas.Options{Directory: dir})
	h.upload("protos", `message Uploaded {}`)
	write(t, dir, "a.proto", source(`message Found {}`))
	h.Refresh(t.Context())
	h.want("protos: Uploaded")
	if p := h.Problems(); len(p) != 1 || !strings.Contains(p[0], "remove it, or rename the file") {
		t.Errorf("%q", p)
	}
	if _, err := h.Remove(t.Context(), deadletter.Local, "protos", false); err != nil {
		t.Fatal(err)
	}
	h.Refresh(t.Context())
	h.want("protos: Found")
}

// eventually waits for what a loop does.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come to that: " + what)
		}
	}
}

func TestRunWatchesTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := open(t, schemas.Options{Directory: dir})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Run(ctx) }()
	defer func() { cancel(); <-done }()
	write(t, dir, "deep/er/a.proto", source(`message A {}`))
	eventually(t, "a file is found", func() bool { return h.sets() == "protos: A" })
	write(t, dir, "deep/er/a.proto", source(`message B {}`)) // of the same size
	eventually(t, "a file has changed", func() bool { return h.sets() == "protos: B" })
	if err := os.Remove(filepath.Join(dir, "deep/er/a.proto")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a file is deleted", func() bool { return h.sets() == "" })
}

// services tells the reflection of a server what it has.
type services []string

func (s services) GetServiceInfo() map[string]grpc.ServiceInfo {
	info := map[string]grpc.ServiceInfo{}
	for _, name := range s {
		info[name] = grpc.ServiceInfo{}
	}
	return info
}

// serve starts a server that describes a service S of a message M with these fields.
func serve(t *testing.T, address string, fields ...string) (string, *grpc.Server) {
	t.Helper()
	f := &descriptorpb.FileDescriptorProto{
		Name: proto.String("s.proto"), Package: proto.String("p"), Syntax: proto.String("proto3"), MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("S"), Method: []*descriptorpb.MethodDescriptorProto{{Name: proto.String("Do"), InputType: proto.String(".p.M"), OutputType: proto.String(".p.M")}}}},
	}
	for i, name := range fields {
		f.MessageType[0].Field = append(f.MessageType[0].Field, &descriptorpb.FieldDescriptorProto{
			Name: proto.String(name), Number: proto.Int32(int32(i + 1)), Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
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
	v1.RegisterServerReflectionServer(server, reflection.NewServerV1(reflection.ServerOptions{Services: services{"p.S"}, DescriptorResolver: files}))
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
	if _, err := h.Remove(t.Context(), deadletter.Local, address, false); !errors.Is(err, deadletter.ErrConflict) || !strings.Contains(err.Error(), "schemas.reflection") {
		t.Error(err)
	}
	server.Stop()
	h.Refresh(t.Context())
	h.want(address + ": p.M")
	if p := h.Problems(); len(p) != 1 || !strings.HasPrefix(p[0], address+": ") {
		t.Errorf("%q", p)
	}
	h.restart()
	h.want(address + ": p.M")
	serve(t, address, "a", "b")
	h.Refresh(t.Context())
	if sets := h.Registry().Sets(); len(sets) != 2 || sets[0].Source != deadletter.SchemaReflection || sets[0].Detail != address || len(h.Problems()) != 0 {
		t.Errorf("%+v, %q", sets, h.Problems())
	}
	h.Refresh(t.Context())
	if got := h.audit(); !slices.Equal(got, []string{"schema loaded by dlo", "schema loaded by dlo"}) {
		t.Errorf("%q", got)
	}
	h.o.Reflection = nil
	h.restart()
	h.want("")
}
