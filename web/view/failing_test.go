package view

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestAnErrorInALineBeginsWithItsMessage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]saying{
		"com.example.mail.MailException: no template welcome_v3": {
			message: "no template welcome_v3", class: "MailException", typ: "com.example.mail.MailException",
		},
		`App\Mail\NoTemplate: no template`: {
			message: "no template", class: "NoTemplate", typ: `App\Mail\NoTemplate`,
		},
		"Acme::Mail::Missing: no template": {
			message: "no template", class: "Missing", typ: "Acme::Mail::Missing",
		},
		"ValueError: bad: worse": {
			message: "bad: worse", class: "ValueError", typ: "ValueError",
		},
		"java.lang.NullPointerException": {
			message: "NullPointerException", typ: "java.lang.NullPointerException",
		},
		"dial tcp 10.0.0.1:5432: connection refused": {
			message: "dial tcp 10.0.0.1:5432: connection refused",
		},
		"orders: there is no template": {message: "orders: there is no template"},
		"letters rejected":             {message: "letters rejected"},
		"\u202eValueError: x":          {message: line("\u202eValueError: x", 90)},
		"":                             {},
	} {
		want.whole = line(text, tooltipShown)
		if got := sayingOf(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	long := sayingOf("a.B: " + strings.Repeat("é", 4000))
	if len(long.message) > messageShown || len(long.whole) > tooltipShown {
		t.Errorf("a long one: %d and %d bytes", len(long.message), len(long.whole))
	}
}

func TestGroupsThatLookAlikeAreTwins(t *testing.T) {
	t.Parallel()
	g := func(id deadletter.GroupID, queue, typ, text string) deadletter.GroupRow {
		return deadletter.GroupRow{ID: id, Queue: queue, Type: typ, Error: text}
	}
	same := lookAlikes([]deadletter.GroupRow{
		g(1, "mail", "a.A", "no template 7"), g(2, "sms", "a.A", "no template 7"), g(3, "mail", "", "no template 8"),
		g(4, "mail", "a.B", ""), g(5, "mail", "a.C", ""),
	})
	if len(same) != 1 || same[3] != 1 {
		t.Errorf("twins: %v", same)
	}
}

func TestNamesBreakAtTheirSeparators(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"com.example.Mail": "com.<wbr>example.<wbr>Mail", "x-death": "x-<wbr>death", "a<b>.c": "a&lt;b&gt;.<wbr>c",
		"end.": "end.", "": "", "é/é": "é/<wbr>é",
	} {
		var b strings.Builder
		if err := breakableName(name).Render(t.Context(), &b); err != nil || b.String() != want {
			t.Errorf("%q: %q, want %q, %v", name, b.String(), want, err)
		}
	}
}
