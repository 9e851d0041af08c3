package testenv

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Channel opens a new connection with one channel. Both are closed at the end of the test.
func Channel(t testing.TB, url string) (*amqp.Connection, *amqp.Channel) {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return conn, ch
}
