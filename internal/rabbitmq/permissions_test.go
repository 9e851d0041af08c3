package rabbitmq_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestPermissionsOfAPerson reads the permissions of the broker's users. It checks that only an
// administrator may read them.
func TestPermissionsOfAPerson(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	person, _ := node.User(t, vhost, "")
	node.Grant(t, vhost, person, "", "^pay\\.|orders$", ".*")
	open := func(tag string) *rabbitmq.Link {
		own, _ := node.VHost(t)
		user, _ := node.User(t, own, tag)
		l, err := rabbitmq.Connect(rabbitmq.Broker{
			Name: "main", URL: address, Management: node.ManagementURLOf(user + ":secret"),
		}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	admin := open("administrator")
	list, err := admin.Permissions(t.Context(), person)
	if err != nil || len(list) != 1 || list[0].VHost != vhost {
		t.Fatalf("%+v, %v", list, err)
	}
	g := deadletter.Grant{Role: deadletter.RoleOperator}.Within(list)
	p := deadletter.Principal{Name: person, Grants: []deadletter.Grant{g}}
	for queue, want := range map[string]bool{
		"pay.cards": true, "eu.orders": true, "orders.eu": false, "x.pay.": false, "": false,
	} {
		if may := deadletter.Allow(p, deadletter.VerbRequeue, deadletter.Origin{
			Broker: "main", VHost: vhost, Queue: queue,
		}) == nil; may != want {
			t.Errorf("%q: %t, want %t", queue, may, want)
		}
	}
	if deadletter.Allow(p, deadletter.VerbRequeue, deadletter.Origin{
		Broker: "other", VHost: vhost, Queue: "pay.cards",
	}) == nil || deadletter.Allow(p, deadletter.VerbRequeue, deadletter.Origin{
		Broker: "main", VHost: "other", Queue: "pay.cards",
	}) == nil || p.MayEverywhere(deadletter.VerbView) || p.Sees().Everywhere() {
		t.Error("the grant holds elsewhere")
	}
	if list, err := admin.Permissions(t.Context(), "nobody-"+person); err != nil || len(list) != 0 {
		t.Errorf("an unknown user: %v, %v", list, err)
	}
	for _, name := range []string{"../../../api/overview", "a/b", "%2e%2e", ""} {
		if list, err := admin.Permissions(t.Context(), name); err != nil || len(list) != 0 {
			t.Errorf("%q: %v, %v", name, list, err)
		}
	}
	if _, err := open("management").Permissions(t.Context(), person); err == nil ||
		!strings.Contains(err.Error(), "tag administrator") {
		t.Errorf("without the tag: %v", err)
	}
}
