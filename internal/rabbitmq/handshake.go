package rabbitmq

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// outspoken is an authentication method that asks the broker to report a refused login. Without
// this request, RabbitMQ closes the connection silently (3.10.8, 4.0.5, 4.3.6). The client library
// then reports a wrong password, even if a network failure has ended the connection during the
// login.
//
// The request is a capability of the connection. The library has no option for it, and replaces the
// configured capabilities with its own. After that, the library calls the method Response, so
// Response can still add the capability (amqp091-go v1.16.0).
type outspoken struct {
	amqp.Authentication
	properties amqp.Table // the properties of the connection
}

// Response adds the capability authentication_failure_close to those that the AMQP client library
// sends to the broker. The library calls Response to get the password for a frame, and then sends
// the frame with the capabilities too. Therefore it is not too late to add a capability.
func (a outspoken) Response() string {
	if capabilities, ok := a.properties["capabilities"].(amqp.Table); ok {
		capabilities["authentication_failure_close"] = true
	}
	return a.Authentication.Response()
}

// logins returns the authentication methods that a URL names. The parameter "properties" holds the
// properties of the connection. If the AMQP client library does not know one of the methods, the
// result is nil. The library then reports this error itself.
func logins(u amqp.URI, properties amqp.Table) []amqp.Authentication {
	ways := map[string]amqp.Authentication{
		"PLAIN": u.PlainAuth(), "AMQPLAIN": u.AMQPlainAuth(), "EXTERNAL": &amqp.ExternalAuth{},
	}
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

// explain describes the error that ended a handshake. If the broker closed the connection without a
// reason, the AMQP client library reports that the login was refused, which is wrong. In that case,
// explain says that the connection was cut.
func explain(err error) error {
	var e *amqp.Error
	switch {
	case !errors.As(err, &e):
	case !e.Server && (e == amqp.ErrCredentials || e == amqp.ErrVhost):
		return errors.New(
			"the connection was cut in the middle of the handshake, by the network or by a broker that stops",
		)
	case e.Code == amqp.AccessRefused:
		return fmt.Errorf("the broker refused user or password (%s)", e.Reason)
	case e.Code == amqp.NotAllowed:
		return fmt.Errorf(
			"the broker does not let this user into the vhost, or the vhost does not exist (%s)", e.Reason,
		)
	}
	return err
}
