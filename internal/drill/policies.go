package drill

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// policyFailures lists the failures in which a policy or a setting of a queue makes the broker
// delete letters.
var policyFailures = []Failure{
	limitFailure(
		"max-length", "a policy limits the length of an inbox", map[string]any{"max-length": 50},
		"max-length 50 (policy drill-max-length)",
	),
	limitFailure(
		"max-length-bytes", "a policy limits the bytes of an inbox", map[string]any{"max-length-bytes": 1 << 20},
		"max-length-bytes 1048576 bytes (policy drill-max-length-bytes)",
	),
	limitFailure(
		"message-ttl", "a policy lets letters expire in an inbox", map[string]any{"message-ttl": 3_600_000},
		"message-ttl 3600000 ms (policy drill-message-ttl)",
	),
	limitFailure(
		"expires", "a policy lets an inbox expire that is not read for a day", map[string]any{"expires": 86_400_000},
		"expires 86400000 ms (policy drill-expires)",
	),
	{
		Name:  "operator-policy",
		Does:  "an operator policy limits the length of an inbox; its owner takes it away",
		inbox: "drill.operator-policy",
		admin: true,
		wants: losesLetters("drill.operator-policy", "max-length 50 (operator policy drill-operator-policy)"),
		make: func(ctx context.Context, g *ground) error {
			return g.site.policy(
				ctx, "operator-policies", "drill-operator-policy", "drill.operator-policy",
				map[string]any{"max-length": 50},
			)
		},
		cure: func(ctx context.Context, g *ground, _ problem) error {
			return g.site.drop(ctx, "operator-policies", "drill-operator-policy")
		},
	},
	{
		Name: "argument", Does: "an inbox is declared again with a length", inbox: "drill.argument",
		wants: losesLetters("drill.argument", "declare the queue again without x-max-length"),
		make: func(ctx context.Context, g *ground) error {
			return g.site.redeclare(ctx, "drill.argument", "x-max-length", 50)
		},
		cure: func(ctx context.Context, g *ground, _ problem) error { return g.site.redeclare(ctx, "drill.argument") },
	},
	{
		Name: "delivery-limit", Does: "a policy gives dlo's own inbox a delivery limit", own: "drill.delivery-limit",
		wants: losesLetters("drill.delivery-limit", "Its delivery limit lets the broker delete letters"),
		make: func(ctx context.Context, g *ground) error {
			return g.site.policy(
				ctx, "policies", "drill-delivery-limit", "drill.delivery-limit", map[string]any{"delivery-limit": 5},
			)
		},
	},
	{
		Name: "own-queue", Does: "a policy lets messages expire in another queue of dlo",
		wants: sign{
			kind:     deadletter.ProblemOwnQueue,
			severity: deadletter.SeverityNotify,
			about:    "dlo.annotations",
			says:     "message-ttl 60000 ms (policy drill-own-queue)",
		},
		make: func(ctx context.Context, g *ground) error {
			return g.site.policy(
				ctx, "policies", "drill-own-queue", "dlo.annotations", map[string]any{"message-ttl": 60_000},
			)
		},
	},
}

// losesLetters returns the report that is expected if the broker deletes letters from an inbox.
func losesLetters(inbox, says string) sign {
	return sign{kind: deadletter.ProblemInboxLoses, severity: deadletter.SeverityPage, about: inbox, says: says}
}

// limitFailure returns the description of a failure. To cause it, the drill declares an inbox and
// sets a policy on this inbox.
func limitFailure(name, does string, definition map[string]any, says string) Failure {
	inbox := "drill." + name
	return Failure{
		Name: name, Does: does, inbox: inbox, wants: losesLetters(inbox, says),
		make: func(ctx context.Context, g *ground) error {
			return g.site.policy(ctx, "policies", "drill-"+name, inbox, definition)
		},
	}
}

// redeclare deletes a queue and declares it again with other arguments.
func (s *site) redeclare(ctx context.Context, queue string, arguments ...any) error {
	if err := s.drop(ctx, "queues", queue); err != nil {
		return err
	}
	return s.declare(ctx, queue, arguments...)
}
