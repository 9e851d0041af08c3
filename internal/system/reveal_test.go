package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestRevealByCommandLine checks that the command line shows a masked value only on request. The
// audit must record the reveal.
func TestRevealByCommandLine(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	p := serve(
		t, "", "brokers: [{url: 'amqp://127.0.0.1:1/'}]\nmasking: [{json: card.number}, {header: authorization}]\n",
		nil,
	).child
	const id = "01a1f82e-3420-7001-8000-000000000001"
	line := `{"v":1,"id":"` + id + `","state":"dead","origin":{"broker":"main","vhost":"/","queue":"sms","exchange":"","routing_key":""},"inbox":"dlo.letters","exchange":"","routing_key":"",` +
		`"received_at":"2026-11-20T08:59:00Z","reason":"rejected","attempts":0,"type":"","error":"","why":"","properties":{},"headers":{"authorization":{"t":"longstr","v":"Bearer s3cret"}},"body":"eyJjYXJkIjp7Im51bWJlciI6IjQxMTEifX0="}` + "\n"
	file := filepath.Join(t.TempDir(), "letters.ndjson")
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	p.dlo(ctx, 0, "", "letters", "import", file)
	for _, command := range [][]string{{"letters", "show", id, "-o", "json"}, {"letters", "export"}} {
		if out, _ := p.dlo(
			ctx, 0, "", command...,
		); strings.Contains(out, "4111") || strings.Contains(out, "s3cret") || strings.Contains(out, "eyJj") {
			t.Errorf("%v shows a masked value: %s", command, out)
		}
		if out, _ := p.dlo(
			ctx, 0, "", append(command, "--reveal")...,
		); !strings.Contains(out, "s3cret") || !strings.Contains(out, "eyJj") {
			t.Errorf("%v --reveal: %s", command, out)
		}
	}
	if _, errs := p.dlo(ctx, 1, "", "letters", "body", id); !strings.Contains(errs, "reveal=1") {
		t.Error(errs)
	}
	if out, _ := p.dlo(ctx, 0, "", "letters", "body", id, "--reveal"); out != `{"card":{"number":"4111"}}` {
		t.Error(out)
	}
	if out, _ := p.dlo(ctx, 0, "", "letters", "reveal", id, "card.number"); out != "4111\n" {
		t.Errorf("%q", out)
	}
	if out, _ := p.dlo(ctx, 0, "", "letters", "reveal", "--header", id, "authorization"); out != "Bearer s3cret\n" {
		t.Errorf("%q", out)
	}
	p.dlo(ctx, 2, "", "letters", "reveal", id, "card")
	out, _ := p.dlo(ctx, 0, "", "audit", "list")
	for _, want := range []string{
		"field card.number", "header authorization", "the whole body", "the whole letter", "export of 1 letter",
	} {
		if !strings.Contains(out, want) || strings.Contains(out, "4111") {
			t.Errorf("%s is not in the audit: %s", want, out)
		}
	}
}
