package web_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
)

// headlines is a dlo whose letters have the types shop.Order and shop.Refund. The field
// tenant_id is indexed.
type headlines struct {
	*house
	types   *descriptor.Registry
	decoder *payload.Decoder
	indexer *classify.Indexer
	who     deadletter.Principal
}

func openHeadlines(t *testing.T) *headlines {
	t.Helper()
	h := &headlines{types: descriptor.NewRegistry(), who: deadletter.Local}
	h.declare("")
	h.decoder = &payload.Decoder{Types: h.types}
	now := func() *payload.Decoder { return h.decoder }
	fields, log := []string{"note", "tenant_id"}, slog.New(slog.DiscardHandler)
	h.house = open(t, func(o *web.Options) {
		o.Decoder, o.Fields = now, fields
		o.Actor = func(*http.Request) (deadletter.Principal, error) { return h.who, nil }
	})
	h.t = t
	targets := &rules.Targets{}
	targets.Add("main", "/", []string{"*"}, nil)
	h.classifier = classify.New(h.store, classify.Options{
		Decoder: now, Targets: targets, Now: func() time.Time { return start }, Log: log,
		Rules: rules.NewBook(&rules.Set{Default: rules.Rule{Name: rules.DefaultName, Severity: deadletter.SeverityDigest}}),
	})
	h.indexer = classify.NewIndexer(h.store, classify.IndexerOptions{Decoder: now, Fields: fields, Log: log})
	return h
}

// declare declares the types. The parameter "option" is an option of the field tenant_id.
func (h *headlines) declare(option string) {
	source := `syntax = "proto3"; package shop; message Order { int64 tenant_id = 1` + option + `; string note = 2; }
		message Refund { int64 tenant_id = 1; string note = 2; }`
	if _, err := h.types.AddSource("shop", fstest.MapFS{"shop.proto": {Data: []byte(source)}}); err != nil {
		panic(err)
	}
}

// fail stores n dead letters of a queue with the given type, error and tenant.
func (h *headlines) fail(n int, queue, typ, message string, tenant int) []deadletter.ID {
	h.t.Helper()
	var list []deadletter.Arrival
	for i := range n {
		body := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(tenant))
		body = protowire.AppendString(protowire.AppendTag(body, 2, protowire.BytesType), fmt.Sprint("note ", i))
		list = append(list, deadletter.Arrival{
			Exchange: "dlo.dlx", RoutingKey: queue, Body: body,
			Properties: deadletter.Properties{
				Type: typ,
				Headers: deadletter.Table{
					"x-error-message": message,
					"x-death": []any{deadletter.Table{
						"queue": queue, "exchange": "shop", "reason": "rejected", "count": int64(1),
						"routing-keys": []any{"k"}, "time": start.Add(-time.Minute),
					}},
				},
			},
		})
	}
	ids := h.take(list...)
	for _, step := range []func() (int, error){
		func() (int, error) { return h.classifier.Step(h.t.Context()) },
		func() (int, error) { return h.indexer.Step(h.t.Context()) },
	} {
		for done, err := 1, error(nil); done > 0; {
			if done, err = step(); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	return ids
}

// of returns the headline of a group.
func (h *headlines) of(group string) *deadletter.Headline {
	h.t.Helper()
	var g api.GroupDetail
	h.get("/api/v1/groups/"+group).want(h.t, 200).json(h.t, &g)
	return g.Headline
}

const (
	unknownTenant = "the tenant is not known"
	slow          = "the mail server did not answer"
)

// TestAHeadlineNamesTheDifference checks the sentence about the value that distinguishes a group
// from the other letters of its queue and type. There must be enough letters on both sides. Letters
// of another type or queue must not count.
func TestAHeadlineNamesTheDifference(t *testing.T) {
	t.Parallel()
	h := openHeadlines(t)
	h.fail(19, "mail", "shop.Order", unknownTenant, 48213)
	h.fail(6, "mail", "shop.Order", slow, 48213)
	h.fail(14, "mail", "shop.Order", slow, 7)
	h.fail(40, "mail", "shop.Refund", slow, 48213)
	h.fail(40, "text", "shop.Order", slow, 48213)
	if got := h.of("G-1"); got != nil {
		t.Errorf("19 letters have a headline: %+v", got)
	}
	h.fail(1, "mail", "shop.Order", unknownTenant, 48213)
	want := deadletter.Headline{Path: "tenant_id", Value: "48213", Share: 1, Elsewhere: .3, Sampled: 20, Others: 20}
	if got := h.of("G-1"); got == nil || *got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, page := range []string{"/groups/G-1", "/groups/G-1?peek=1", "/triage?q=group:G-1"} {
		h.get(page).want(t, 200, "All 20 have <code>tenant_id 48213</code>; 30.0% elsewhere.")
	}
	// 14 of the 20 letters of G-2 have tenant 7; G-3 and G-4 are alone with their type and queue
	for _, other := range []string{"G-2", "G-3", "G-4"} {
		if got := h.of(other); (got != nil) != (other == "G-2") {
			t.Errorf("%s: %+v", other, got)
		}
	}
	h.get("/groups/G-2").want(t, 200, "70.0% of 20 have <code>tenant_id 7</code>; 0% elsewhere.")
	h.fail(24, "mail", "shop.Order", slow, 48213) // now 30 of the 44 others have it, and a lift of 2 is missing
	if got := h.of("G-1"); got != nil {
		t.Errorf("the value is almost as frequent elsewhere: %+v", got)
	}
}

// TestOnlyTheSameTypeIsCompared checks that quiet letters of another type are not compared with a
// group, although they are of the same queue.
func TestOnlyTheSameTypeIsCompared(t *testing.T) {
	t.Parallel()
	h := openHeadlines(t)
	h.requeueQuietly("mail", h.fail(10, "mail", "shop.Refund", slow, 7))
	h.requeueQuietly("mail", h.fail(6, "mail", "shop.Order", slow, 8))
	h.fail(10, "mail", "shop.Order", unknownTenant, 9)
	var g api.GroupDetail
	h.get("/api/v1/groups/G-3").want(t, 200).json(t, &g)
	want := []deadletter.Different{{Field: "tenant_id", Value: "9", Here: 10}}
	if g.Sampled != 10 || g.Quiet != 6 || !slices.Equal(g.Different, want) {
		t.Errorf("%d and %d letters: %+v", g.Sampled, g.Quiet, g.Different)
	}
}

// TestAHeadlineShowsNothingMasked checks that a value disappears from the headline as soon as it is
// masked, although the index still has it. It also checks that a headline is only for people who
// may read letters.
func TestAHeadlineShowsNothingMasked(t *testing.T) {
	t.Parallel()
	h := openHeadlines(t)
	h.fail(20, "mail", "shop.Order", unknownTenant, 48213)
	h.fail(20, "mail", "shop.Order", slow, 7)
	h.fail(20, "text", "shop.Order", slow, 48213)
	shown := func() bool {
		t.Helper()
		page := h.get("/groups/G-1").want(t, 200).text + h.get("/triage").want(t, 200).text
		named := strings.Contains(page, " elsewhere.")
		if in := h.of("G-1") != nil; in != named {
			t.Errorf("in the JSON %v, on the pages %v", in, named)
		}
		return named
	}
	if !shown() {
		t.Fatal("no headline")
	}
	everything := h.decoder
	masks := payload.Masks{JSON: []deadletter.FieldPath{{"tenant_id"}}, Fields: []deadletter.MaskedField{
		{Path: deadletter.FieldPath{"tenant_id"}},
	}}
	if h.decoder = (&payload.Decoder{Types: h.types, Mask: masks.Body()}); shown() {
		t.Error("masked by the configuration")
	}
	h.decoder = everything
	for role, want := range map[deadletter.Role]bool{deadletter.RoleViewer: false, deadletter.RoleReader: true} {
		grant := deadletter.Grant{Role: role, Places: deadletter.Places{Queues: []string{"mail"}}}
		if h.who = (deadletter.Principal{Name: "ana", Grants: []deadletter.Grant{grant}}); shown() != want {
			t.Errorf("role %d: want %v", role, want)
		}
	}
	h.who = deadletter.Local
	if h.declare(" [debug_redact = true]"); shown() {
		t.Error("masked by an option of the schema")
	}
}
