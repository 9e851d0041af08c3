package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

const sampleProto = `// A mail that somebody asked for.
message EmailRequested {
  string request_id = 1;
  int64 tenant_id = 2;
  EmailAddress to = 3;
  map<string, string> variables = 5;
  google.protobuf.Timestamp created_at = 7; // when it was asked for
}
`

// sampleTyped returns a queue with n letters that were all decoded in one way.
func sampleTyped(queue, typ string, n int, by deadletter.Reading) TypedQueue {
	q := TypedQueue{
		Origin:  deadletter.Origin{Broker: "main", VHost: "/", Queue: queue},
		Letters: n,
		By:      []deadletter.ReadCount{{Type: typ, Reading: by, Letters: n}},
	}
	if typ != "" {
		q.Types = []TypeCount{{typ, n}}
	}
	return q
}

func sampleSchemas() SchemasPage {
	p := SchemasPage{
		Shell:     sampleShell("Schemas", SectionSchemas, "/schemas"),
		Types:     161,
		Total:     8,
		PageSize:  30,
		Directory: "/etc/dlo/schemas",
		All: TypedQueue{
			Letters: 2705, Unmatched: 19, By: []deadletter.ReadCount{
				{Reading: deadletter.ReadByMatch, Letters: 2566},
				{Reading: deadletter.ReadAsJSON, Letters: 120},
				{Reading: deadletter.ReadAmbiguous, Letters: 2},
				{Reading: deadletter.ReadUnknown, Letters: 17},
			},
		},
		Names: []string{"acme.billing.v1.Invoice", "acme.cdn.v1.PurgeRequested", "acme.notify.v1.EmailRequested"},
		Bindings: []deadletter.Binding{
			{Queue: "billing-*", Type: "acme.billing.v1.Invoice"},
			{Queue: "old.*", Key: "order.#", Type: "acme.orders.v1.Order"},
		},
	}
	p.Schemaless = 1
	p.Picks = []deadletter.Pick{
		{
			ID: 3, Binding: deadletter.Binding{Queue: "email-queue", Type: "acme.notify.v1.EmailRequested"}, By: "Lena Sato",
			Reason: "the vendor sends no type", At: now.Add(-26 * time.Hour),
		},
		{
			ID: 5, Binding: deadletter.Binding{Queue: "events.*", Key: "user.*", Type: "acme.users.v1.UserChanged"}, By: "local",
			At: now.Add(-time.Hour),
		},
		{ID: 4, Group: 418, Binding: deadletter.Binding{Type: "acme.notify.v1.EmailRequested"}, By: "Priya Nair", At: now.Add(-2 * time.Hour)},
		{
			ID: 2, Letter: sampleID(2), Binding: deadletter.Binding{Type: "acme.audit.v1.Record"}, By: "local", Reason: "a try",
			At: now.Add(-72 * time.Hour),
		},
	}
	p.Added = []deadletter.AddedCount{
		{
			Broker:     "main",
			VHost:      "/",
			Queue:      "orders",
			Type:       "acme.orders.v1.Order",
			AddedField: deadletter.AddedField{Number: 17, Wire: "length-delimited"},
			Since:      now.Add(-18 * time.Minute),
			Letters:    312,
		},
		{
			Broker:     "main",
			VHost:      "/",
			Queue:      "email-queue",
			Type:       "acme.notify.v1.EmailRequested",
			AddedField: deadletter.AddedField{Number: 9, Wire: "varint"},
			Since:      now.Add(-26 * time.Hour),
			Letters:    1,
		},
	}
	email := sampleTyped("email-queue", "acme.notify.v1.EmailRequested", 358, deadletter.ReadByBinding)
	email.Bound, email.Exact = &p.Picks[0], true
	timeline := sampleTyped("timeline", "acme.timeline.v1.PostCreated", 60, deadletter.ReadByProperty)
	timeline.Letters, timeline.Types = 88, append(timeline.Types, TypeCount{"acme.timeline.v1.PostDeleted", 28})
	timeline.By = append(timeline.By, deadletter.ReadCount{
		Type: "acme.timeline.v1.PostDeleted", Reading: deadletter.ReadByProperty, Letters: 28,
	})
	billing := sampleTyped("billing-invoices", "acme.billing.v1.Invoice", 27, deadletter.ReadByBinding)
	billing.Configured = &p.Bindings[0]
	sms := sampleTyped("sms-queue", "acme.notify.v1.SmsRequested", 55, deadletter.ReadByMatch)
	sms.Letters, sms.Unmatched, sms.By = 57, 2, append(sms.By, deadletter.ReadCount{Reading: deadletter.ReadAmbiguous, Letters: 2})
	export := sampleTyped("audit-export", "", 17, deadletter.ReadUnknown)
	export.Unmatched = 17
	p.Queues = []TypedQueue{
		export, sampleTyped("webhook-queue", "acme.hooks.v1.WebhookDelivery", 1315, deadletter.ReadByProperty),
		sampleTyped("cdn-purge", "acme.cdn.v1.PurgeRequested", 640, deadletter.ReadByMatch),
		email, sampleTyped("events", "", 120, deadletter.ReadAsJSON), timeline, sms, billing,
	}
	set := func(
		name string, types, files int, s deadletter.SchemaSource, detail, by string, ago time.Duration,
	) SchemaSet {
		return SchemaSet{
			Set: descriptor.Set{
				SchemaVersion: deadletter.SchemaVersion{
					Name: name, Version: strings.Repeat("1f2e3d4c", 8), Source: s, Detail: detail, By: by,
					CurrentAt: now.Add(-ago),
				},
				TypeCount: types, Files: files, Current: true,
			},
		}
	}
	p.Sets = []SchemaSet{
		set("billing", 67, 21, deadletter.SchemaUpload, "set.binpb", "ci", 200*time.Hour),
		set("hooks.internal:50051", 11, 4, deadletter.SchemaReflection, "hooks.internal:50051", "dlo", 5*time.Hour),
		set("legacy", 3, 1, deadletter.SchemaUpload, "envelope.proto", "Lena Sato", 2000*time.Hour),
		set("notify", 42, 14, deadletter.SchemaUpload, "set.binpb", "ci", 17*time.Hour),
		set(
			"timeline.binpb", 38, 9, deadletter.SchemaDirectory, "/etc/dlo/schemas/timeline.binpb", "dlo", 48*time.Hour,
		),
	}
	p.Sets[2].Conflicts, p.Sets[3].Conflicts, p.Sets[3].Older = []string{"notify"}, []string{"legacy"}, 3
	p.Removed = []deadletter.SchemaVersion{
		{
			Name: "old", Version: "aabbccdd", Source: deadletter.SchemaUpload, By: "Priya Nair",
			RemovedAt: now.Add(-3000 * time.Hour),
		},
	}
	p.Servers = []deadletter.SchemaServer{{Address: "hooks.internal:50051", At: now.Add(-2 * time.Minute)}}
	return p
}

// schemaPages returns samples of the schemas page, each in another state. It also returns the
// confirmation pages for uploads and removals.
func schemaPages() map[string]templ.Component {
	empty := SchemasPage{Shell: sampleShell("Schemas", SectionSchemas, "/schemas"), PageSize: 30}
	asked := sampleSchemas()
	asked.Rereading = deadletter.RereadProgress{Why: "set notify 1f2e3d4c", Total: 312, Left: 120, Changed: 15}
	asked.Problems = []string{
		"notify.proto: line 3: edition 2024 is not understood", "orders.internal:50051: connection refused",
	}
	asked.SchemasBad, asked.All.Letters, asked.All.Unread, asked.Several, asked.From, asked.Total, asked.Unnamed = true, 3010, 305, true, 30, 230, 61
	asked.Servers = append(asked.Servers, deadletter.SchemaServer{
		Address: "orders.internal:50051", Problem: "connection refused",
	})
	asked.Queues[0].Unread, asked.Queues[0].By, asked.Queues[0].Types = 1315, nil, nil
	asked.Find = TypeSearch{
		Word: "email",
		More: true,
		Hits: []descriptor.Hit{
			{Type: "acme.notify.v1.EmailRequested", Set: "notify"},
			{Type: "acme.notify.v1.EmailBounced", Set: "notify"},
			{Type: "acme.billing.v1.Contact", Set: "billing", Field: "email", Is: "string"},
		},
	}
	asked.Type = &TypeSource{
		Source: descriptor.Source{
			Type: "acme.notify.v1.EmailRequested",
			Text: sampleProto,
			Cut:  true,
			Definitions: []descriptor.Definition{
				{Set: "notify", Version: "1f2e3d4c", File: "acme/notify/v1/email.proto", Current: true, Fields: 7},
				{Set: "legacy", Version: "aabbccdd", File: "envelope.proto", Current: true, Fields: 3},
				{Set: "notify", Version: "00112233", File: "acme/notify/v1/email.proto", Fields: 6},
			},
		},
		Queues: []TypedQueue{sampleTyped("email-queue", "", 358, deadletter.ReadByBinding)},
	}
	asked.Set = &SetDetail{
		Name:     "notify",
		Versions: []descriptor.Set{asked.Sets[3].Set, asked.Sets[3].Set},
		Conflicts: []descriptor.TypeChange{
			{
				Type:        "acme.notify.v1.EmailRequested",
				Set:         "legacy",
				Differences: []string{"field 7 missing", "field 2 tenant_id type int64 -> string"},
				More:        3,
			},
		},
	}
	asked.Set.Versions[0].Types = asked.Names
	asked.Set.Versions[1].Current, asked.Set.Versions[1].Version = false, "00112233"
	asked.Bind = BindForm{
		Queue: "audit-export", Type: "acme.audit.v1.Recrod", Reason: "they said so",
		Problem: `type "acme.audit.v1.Recrod" is not registered; give the full name of a message type of a registered set`,
	}
	asked.Upload = UploadForm{
		Name:    "notify",
		Problem: "Nothing was changed: schema.proto:1:1: edition 2024 is not understood\nadd a descriptor set.",
	}
	gone := sampleSchemas()
	gone.All = TypedQueue{Letters: 305, Unread: 305}
	gone.Find, gone.Type, gone.Set = TypeSearch{Word: "nothing"}, &TypeSource{
		Source: descriptor.Source{Type: "acme.Gone"}, Problem: "no set defines this type",
	}, &SetDetail{Name: "gone"}
	gone.Rereading = deadletter.RereadProgress{Why: "a pick of acme.audit.v1.Record"}
	upload := SchemaUploadPage{
		Shell: sampleShell("Upload schemas", SectionSchemas, "/schemas"),
		Key:   "k",
		Was:   "1f2e3d4c",
		WasAt: now.Add(-17 * time.Hour),
		Change: descriptor.Change{
			Set:     "notify",
			Version: "99887766",
			Added:   []string{"acme.notify.v1.EmailOpened", "acme.notify.v1.Reason"},
			Enums:   1,
			Changed: []descriptor.TypeChange{
				{Type: "acme.notify.v1.EmailRequested", Differences: []string{"field 21 added: string campaign"}},
			},
			Removed: []string{"acme.notify.v1.Fax"},
			Conflicts: []descriptor.TypeChange{
				{Type: "acme.notify.v1.EmailRequested", Set: "legacy", Differences: []string{"field 7 missing"}},
			},
		},
		SchemaEffect: deadletter.SchemaEffect{Types: 43, Files: 14, Letters: 312, Sampled: 17, Readable: 15},
	}
	same := upload
	same.Known, same.Key = "current", ""
	fresh := upload
	fresh.Was, fresh.Changed, fresh.Removed, fresh.Conflicts, fresh.Sampled, fresh.Letters = "", nil, nil, nil, 0, 0
	changed := upload
	changed.Known, changed.Problem = "older", "Nothing was changed: the set has another version now."
	for i := range 50 {
		changed.Added = append(changed.Added, fmt.Sprintf("acme.many.v1.Type%d", i))
	}
	return map[string]templ.Component{
		"schemas": Schemas(sampleSchemas()), "schemas-empty": Schemas(empty), "schemas-asked": Schemas(asked),
		"schemas-unknown": Schemas(gone),
		"schema-upload":   SchemaUpload(upload), "schema-upload-same": SchemaUpload(same),
		"schema-upload-new": SchemaUpload(fresh), "schema-upload-changed": SchemaUpload(changed),
		"schema-remove": SchemaRemove(SchemaRemovePage{
			Shell: sampleShell("Remove a set", SectionSchemas, "/schemas"), Set: "notify",
			SchemaEffect: deadletter.SchemaEffect{Types: 42, Letters: 358},
		}),
	}
}

// hostileSchemas returns the schema pages with the text "bad" in every field.
func hostileSchemas(shell Shell, bad string, n int) map[string]templ.Component {
	id := sampleID(0)
	typ := "a." + strings.Repeat("x", min(n, 190)) // names of types are checked, but not their length
	version := deadletter.SchemaVersion{
		Name: bad, Version: strings.Repeat("f", 64), Source: deadletter.SchemaUpload, Detail: bad, By: bad, RemovedAt: now,
	}
	set := descriptor.Set{SchemaVersion: version, TypeCount: 1, Files: 1, Types: slicesRepeat(typ, 3000), Current: true}
	change := descriptor.TypeChange{Type: bad, Set: line(bad, 200), Differences: slicesRepeat(bad, 20), More: 1}
	pick := deadletter.Pick{ID: 1, Binding: deadletter.Binding{Queue: bad, Key: bad, Path: bad, Type: typ}, By: bad, Reason: bad, At: now}
	queue := sampleTyped(line(bad, 255), typ, 1, deadletter.ReadByMatch)
	queue.Unmatched, queue.Bound, queue.Types = 1, &pick, slicesRepeat(TypeCount{typ, 1}, 20)
	queue.Broker, queue.VHost = line(bad, 60), line(bad, 255)
	letter := pick
	letter.Letter = id
	p := SchemasPage{
		Shell:     shell,
		Several:   true,
		Total:     60,
		PageSize:  30,
		Problems:  slicesRepeat(bad, 30),
		Rereading: deadletter.RereadProgress{Why: bad, Total: 1, Left: 1},
		Directory: bad,
		Added: slicesRepeat(deadletter.AddedCount{
			Broker:     bad,
			VHost:      bad,
			Queue:      line(bad, 255),
			Type:       typ,
			AddedField: deadletter.AddedField{Number: 1<<29 - 1, Wire: "length-delimited"},
			Letters:    1,
		}, 8),
		Queues:   slicesRepeat(queue, 20),
		Picks:    append(slicesRepeat(pick, 60), letter),
		Bindings: slicesRepeat(deadletter.Binding{Queue: bad, Key: bad, Path: bad, Type: typ}, 60),
		Bind:     BindForm{bad[:min(n, 255)], bad[:min(n, 255)], bad[:min(n, 255)], bad[:min(n, 255)], bad[:min(n, 500)], bad},
		Sets:     slicesRepeat(SchemaSet{set, 3, slicesRepeat(bad, 9)}, 60),
		Removed:  slicesRepeat(version, 60),
		Servers:  slicesRepeat(deadletter.SchemaServer{Address: bad, Problem: bad}, 3),
		Set: &SetDetail{
			line(bad, 200), slicesRepeat(set, 20), slicesRepeat(change, 60),
		},
		Find: TypeSearch{
			Word: bad[:min(n, 200)],
			Hits: slicesRepeat(descriptor.Hit{Type: typ, Set: bad, Field: bad, Is: bad}, 200),
		},
		Type: &TypeSource{
			Source: descriptor.Source{
				Type: line(bad, 500), Text: bad,
				Definitions: slicesRepeat(descriptor.Definition{
					Set: line(bad, 200), Version: strings.Repeat("f", 64), File: bad, Current: true, Fields: 1,
				}, 60),
			},
			Queues: slicesRepeat(queue, 60),
		},
		Upload: UploadForm{Name: bad[:min(n, 200)], Problem: strings.Repeat(line(bad, 300)+"\n", 40)},
	}
	p.Names, p.Unnamed = NamesOffered(slicesRepeat(typ, 500))
	p.Find.Hits[0].Type, p.Queues[0].Types[0].Type = line(bad, 200), line(bad, 200)
	for i := range p.Sets {
		p.Sets[i].Name = line(bad, 200)
	}
	upload := SchemaUploadPage{
		Shell: shell, Key: "k", Was: "f", Problem: bad,
		Change: descriptor.Change{
			Set: bad, Version: "f", Added: slicesRepeat(bad, 60), Removed: slicesRepeat(bad, 60),
			Changed: slicesRepeat(change, 60), Conflicts: slicesRepeat(change, 60),
		},
	}
	return map[string]templ.Component{
		"schemas": Schemas(p), "schema-upload": SchemaUpload(upload),
		"schema-remove": SchemaRemove(SchemaRemovePage{Shell: shell, Set: line(bad, 200)}),
	}
}
