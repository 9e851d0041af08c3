package testenv

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// User creates a RabbitMQ user with the given tags and without rights. It returns the name of the
// user, and an AMQP URL of the vhost. The URL contains this name and the password "secret". The
// user is deleted at the end of the test.
func (n *Node) User(t testing.TB, vhost, tags string) (name, address string) {
	t.Helper()
	name = "user-" + vhost
	if err := n.API(http.MethodPut, "/api/users/"+url.PathEscape(name), map[string]string{
		"password": "secret", "tags": tags,
	}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.API(http.MethodDelete, "/api/users/"+url.PathEscape(name), nil, nil); err != nil {
			t.Logf("user %s stays: %v", name, err)
		}
	})
	n.Grant(t, vhost, name, "^$", "^$", "^$")
	u, err := url.Parse(n.AMQPURL(vhost))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, "secret")
	return name, u.String()
}

// Grant gives a user rights in a vhost. The parameters "configure", "write" and "read" are regular
// expressions.
func (n *Node) Grant(t testing.TB, vhost, user, configure, write, read string) {
	t.Helper()
	rights := map[string]string{"configure": configure, "write": write, "read": read}
	if err := n.API(
		http.MethodPut, "/api/permissions/"+url.PathEscape(vhost)+"/"+url.PathEscape(user), rights, nil,
	); err != nil {
		t.Fatal(err)
	}
}

var shellWord = regexp.MustCompile(`'([^']*)'|\S+`)

// Cure runs the rabbitmqctl command at the end of a text.
func (n *Node) Cure(t testing.TB, text string) {
	t.Helper()
	_, command, found := strings.Cut(text, "rabbitmqctl ")
	if !found {
		t.Fatalf("no command in %q", text)
	}
	var args []string
	for _, word := range shellWord.FindAllString(command, -1) {
		args = append(args, strings.Trim(word, "'"))
	}
	if out, err := n.Ctl(args...); err != nil {
		t.Fatal(err, out)
	}
}
