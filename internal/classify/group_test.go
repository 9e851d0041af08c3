package classify_test

import (
	"testing"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// TestTheGroupOfARule covers a rule that sets a group. The group must hold all letters of one
// origin that the rule matches, whatever their error is. The title of the group must begin with the
// name that the rule gives.
func TestTheGroupOfARule(t *testing.T) {
	t.Parallel()
	o := options()
	set := *o.Rules.Set()
	set.Rules = []rules.Rule{{Name: "schema", Match: rules.Match{Error: rules.Patterns{"*unknown*"}}, Group: "schema"}}
	o.Rules = rules.NewBook(&set)
	letter := func(queue, reason, text string) deadletter.Letter {
		return deadLetter(queue, reason, table{"x-error": text})
	}
	got := verdicts(
		t, o, letter("sms", "rejected", "unknown field a"), letter("sms", "expired", "unknown type"),
		letter("email-1", "rejected", "unknown field a"), letter("sms", "rejected", "boom"),
		letter("sms", "rejected", "schema"),
	)
	if got[0].GroupKey != got[1].GroupKey || got[0].GroupTitle != "schema: unknown field a" || got[1].Rule != "schema" {
		t.Errorf("%q and %q", got[0].GroupTitle, got[1].GroupTitle)
	}
	keys := map[[32]byte]bool{}
	for _, v := range got {
		keys[v.GroupKey] = true
	}
	if len(keys) != 4 || got[3].GroupTitle != "boom" {
		t.Errorf("%d groups", len(keys))
	}
	stored := letter("sms", "rejected", "unknown field a")
	stored.SetOrigin(got[0].Origin)
	stored.State, stored.Rule, stored.Reason, stored.ChangedAt = deadletter.StateDead, "schema", "rejected", now
	u := &unread{letters: []deadletter.Letter{stored}}
	if _, err := classify.NewReader(
		u, classify.New(&fake{}, o), func() {},
	).Step(t.Context()); err != nil || u.read[0].GroupKey != got[0].GroupKey || u.read[0].Error != "unknown field a" {
		t.Errorf("read again: %v %+v", err, u.read)
	}
}
