package view

import (
	"maps"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// sampleEdit returns the edit page of a sample letter whose text was shortened and checked.
func sampleEdit() EditPage {
	return EditPage{
		Shell:      sampleShell("Edit 79c3aeae", SectionLetters, "/letters/x/edit"),
		Letter:     sampleID(0),
		Query:      "state:dead",
		Group:      418,
		GroupTitle: `template "welcome_v3" not found`,
		Others:     311,
		Queue:      "email-queue",
		Type:       "acme.notify.v1.EmailRequested",
		Syntax:     "JSON",
		Text:       "{\n  \"requestId\": \"req_9f2c41d07b\",\n  \"to\": \"d••••\",\n  \"template\": { \"name\": \"welcome_v2\" }\n}",
		Wrapped:    "base64, as received",
		Masked:     true,
		Checked:    true,
		Changed:    1,
		Key:        "c0ffee",
		Mistakes:   map[string]string{},
		Diff: []payload.DiffLine{
			{Op: payload.Same, Spans: []payload.Span{{Text: `  "to": "d••••",`}}},
			{
				Op: payload.Removed,
				Spans: []payload.Span{
					{Text: `  "template": { "name": "welcome_`},
					{Text: "v3", Changed: true},
					{Text: `" }`},
				},
			},
			{
				Op: payload.Added,
				Spans: []payload.Span{
					{Text: `  "template": { "name": "welcome_`},
					{Text: "v2", Changed: true},
					{Text: `" }`},
				},
			},
			{Op: payload.LeftOut, Left: 12},
		},
		Checks: []payload.Check{
			{OK: true, Text: "Valid JSON, valid for the type"},
			{OK: true, Text: "Encoded again to 157 B, decodes back unchanged"},
			{Text: "Same `idempotency_key`: a consumer that saw it may skip it"},
		},
		Properties: []EditField{
			{Name: "type", Label: "type", Value: "EmailRequested", Was: "EmailRequested"},
			{Name: "expiration", Label: "expiration, milliseconds"},
		},
		Headers: []EditField{
			{Name: "x-tenant", Value: "acme", Was: "acme", Kind: "longstr"},
			{Name: "tries", Value: "3", Was: "3", Kind: "int32"},
			{},
		},
		Whole: []WholeHeader{
			{Name: "x-exception-stacktrace", Kind: "longstr", Size: 130_900, Cuts: true},
			{Name: "trace", Kind: "table", Size: 120},
		},
	}
}

func editPages() map[string]templ.Component {
	wrong := sampleEdit()
	wrong.Problem, wrong.Diff, wrong.Checks = "Nothing was sent: see the marked field.", nil, nil
	wrong.Mistake = &payload.EditError{Line: 3, Column: 9, Path: "to", Message: `put the masked value back, or write a new one`}
	wrong.Mistakes = map[string]string{
		"reason":  "Say why, so that the next person understands the change.",
		"headers": "header CC: it would send copies to other queues, so it cannot be set.",
	}
	wrong.Headers[1].Value, wrong.Headers[1].Mistake = "many", `"many" is no int32.`
	again := sampleEdit()
	again.Doubt = true
	again.Newest, again.Revision, again.Checked, again.Diff, again.Checks, again.Masked = 2, 2, false, nil, nil, false
	refused := sampleEdit()
	refused.Refusal = "the letter is requeued, and only a letter that can be requeued can be edited"
	asIs := sampleEdit()
	asIs.Bytes, asIs.Text, asIs.Diff, asIs.More = "this body cannot be edited as JSON or text, as no type is known for its bytes: replace it as a whole", "", nil, 12
	asIs.Mistakes = map[string]string{
		"headers": `The properties cannot be sent as they are: the properties take 131203 bytes, more than the 120000 that fit into a frame; header "x-exception-stacktrace" takes 130929 of them: shorten or remove it.`,
	}
	asIs.Whole[0].Cut, asIs.Whole[1].Removed = true, true
	many := sampleConfirmAll(deadletter.VerbEdit)
	many.Typed = maps.Clone(many.Typed)
	many.Typed.Set("patch", "[\n  {\"op\": \"replace\", \"path\": \"/template/name\", \"value\": \"welcome_v2\"}\n]")
	many.Samples = []ConfirmSample{
		{Letter: sampleID(1), Diff: sampleEdit().Diff},
		{Letter: sampleID(2), Problem: "/template/name: there is no such value in this letter"},
	}
	edited := sampleLetter(TabDecoded)
	edited.Letter.Revision, edited.Letter.Revised = 1, &deadletter.Revision{
		Number: 1, By: "Lena Sato", Changes: "template.name", Reason: "welcome_v3 was never released",
	}
	changed := edited
	changed.Tab, changed.EditDiff = TabHistory, sampleEdit().Diff
	return map[string]templ.Component{
		"edit": Edit(sampleEdit()), "edit-mistakes": Edit(wrong), "edit-again": Edit(again),
		"edit-refused": Edit(refused), "edit-as-is": Edit(asIs), "confirm-edit": Confirm(many),
		"letter-edited": Letter(edited), "letter-edited-history": Letter(changed),
	}
}
