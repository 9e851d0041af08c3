package classify_test

import (
	"context"
	"testing"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// BenchmarkVerdict measures the time of a verdict, without the store. It measures three kinds of
// letters: without failure headers, with the headers of a framework, and with the plain headers
// that most consumers write.
func BenchmarkVerdict(b *testing.B) {
	for name, headers := range map[string]deadletter.Table{
		"silent": {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "x-tenant": "48213"},
		"plain": {
			"x-error-message": `order 17 of "anna" not found: 0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20`,
			"x-error-type":    "NotFound",
		},
		"framework": {
			"x-exception-message": "boom", "x-original-exchange": "shop", "x-original-routingKey": "k",
			"x-exception-stacktrace": "java.lang.X: boom\n\tat com.acme.Stock.take(Stock.java:42)\n\tat java.base/java.lang.Thread.run(Thread.java:1)",
		},
	} {
		b.Run(name, func(b *testing.B) {
			f := &fake{}
			c := classify.New(f, options())
			l := deadLetter("sms", "rejected", headers)
			b.ReportAllocs()
			for b.Loop() {
				f.letters, f.verdicts = append(f.letters[:0], l), f.verdicts[:0]
				if _, err := c.Step(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
