package drill

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestACureIsDoneAsItIsShown checks that apply translates the rabbitmqctl commands that dlo prints
// into the right calls of the management API.
func TestACureIsDoneAsItIsShown(t *testing.T) {
	t.Parallel()
	const vhost = "dlo-drill-abcdefghij"
	for cure, want := range map[string]string{
		`Override the policy with one of higher priority: rabbitmqctl set_policy -p 'dlo-drill-abcdefghij' --priority 1000 --apply-to queues 'dlo-own' '^dlo\.' '{"overflow":"drop-head"}'`: `PUT /api/policies/dlo-drill-abcdefghij/dlo-own {"apply-to":"queues","definition":{"overflow":"drop-head"},"pattern":"^dlo\\.","priority":1000}`,
		`Give it a policy without a limit (rabbitmqctl set_policy -p 'dlo-drill-abcdefghij' --priority 1001 --apply-to queues 'dlo-no-limit' '^it'\''s$' '{"delivery-limit":-1}').`:         `PUT /api/policies/dlo-drill-abcdefghij/dlo-no-limit {"apply-to":"queues","definition":{"delivery-limit":-1},"pattern":"^it's$","priority":1001}`,
		`rabbitmqctl set_permissions -p 'dlo-drill-abcdefghij' 'dlo' '^(dlo\..*)$' '^(amq\.default|dlo\..*)$' '^(dlo\..*)$'`:                                                                `PUT /api/permissions/dlo-drill-abcdefghij/dlo {"configure":"^(dlo\\..*)$","write":"^(amq\\.default|dlo\\..*)$","read":"^(dlo\\..*)$"}`,
		`Check the URL: rabbitmqctl set_user_tags 'dlo-drill-abcdefghij' management`:                                                                                                        `PUT /api/users/dlo-drill-abcdefghij {"password":"secret","tags":"management"}`,
	} {
		var got string
		api := &recorder{on: func(method, path string, body, _ any) error {
			text, err := json.Marshal(body)
			got = method + " " + path + " " + string(text)
			return err
		}}
		s := &site{fence: &fence{api: api, vhost: vhost, user: vhost}, password: "secret"}
		if err := s.apply(t.Context(), cure); err != nil {
			t.Errorf("%s: %v", cure, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
}

// TestACureThatIsNotForTheDrillIsNotDone checks that apply refuses commands for another vhost or
// user, incomplete commands, unknown commands, and texts without a command.
func TestACureThatIsNotForTheDrillIsNotDone(t *testing.T) {
	t.Parallel()
	for _, cure := range []string{
		"", "Find out who deleted them.", "rabbitmqctl", "rabbitmqctl stop_app",
		`rabbitmqctl set_policy -p '/' --priority 1000 --apply-to queues 'dlo-own' '^dlo\.' '{"overflow":"drop-head"}'`,
		`rabbitmqctl set_policy -p 'dlo-drill-abcdefghij' --priority 1000 --apply-to queues 'dlo-own' '^dlo\.' '{"overflow":`,
		`rabbitmqctl set_permissions -p '/' 'dlo' '.*' '.*' '.*'`,
		`rabbitmqctl set_user_tags 'guest' management`,
	} {
		api := &recorder{}
		s := &site{fence: &fence{api: api, vhost: "dlo-drill-abcdefghij", user: "dlo-drill-abcdefghij"}}
		if err := s.apply(t.Context(), cure); err == nil || len(api.asked) > 0 {
			t.Errorf("%q: %v, asked %v", cure, err, api.asked)
		}
	}
}
