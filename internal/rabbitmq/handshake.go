package rabbitmq

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// outspoken is a way to log in that asks the broker to say so when it refuses the login. Without
// that, RabbitMQ ends the connection without a word, as a network that breaks does (3.10.8, 4.0.5,
// 4.3.6), and the client takes either for a wrong password. The client has no option for it: it
// puts its own capabilities in the place of those of the configuration and then asks for the
// response (amqp091-go v1.16.0).
type outspoken struct {
	amqp.Authentication
	properties amqp.Table // of the connection
}

// Response adds the capability to those that the client sends together with the response.
func (a outspoken) Response() string {
	if capabilities, ok := a.properties["capabilities"].(amqp.Table); ok {
		capabilities["authentication_failure_close"] = true
	}
	return a.Authentication.Response()
}

// logins are the ways to log in that a URL names; nil for one that the client does not know, which
// it then says. properties are those of the connection.
func logins(u amqp.URI, properties amqp.Table) []amqp.Authentication {
	ways := map[string]amqp.Authentication{"PLAIN": u.PlainAuth(), "AMQPLAIN": u.AMQPlainAuth(), "EXTERNAL": &amqp.ExternalAuth{}}
	names := u.AuthMechanism
	if len(names) == 0 {
		names = []string{"PLAIN"}
	}
	var list []amqp.Authentication
	for _, name := range names {
		way := ways[strings.ToUpper(name)]
		if way == nil {
			return nil
		}
		list = append(list, outspoken{way, properties})
	}
	return list
}

// explain turns what ended a handshake into words. The client makes up a refusal where the broker
// said nothing.
func explain(err error) error {
	var e *amqp.Error
	switch {
	case !errors.As(err, &e):
	case !e.Server && (e == amqp.ErrCredentials || e == amqp.ErrVhost):
		return errors.New("the connection was cut in the middle of the handshake, by the network or by a broker that stops")
	case e.Code == amqp.AccessRefused:
		return fmt.Errorf("the broker refused user or password (%s)", e.Reason)
	case e.Code == amqp.NotAllowed:
		return fmt.Errorf("the broker does not let this user into the vhost, or the vhost does not exist (%s)", e.Reason)
	}
	return err
}
