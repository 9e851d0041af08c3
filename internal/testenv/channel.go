package testenv

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Channel opens a connection of its own with one channel; both end with t.
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
