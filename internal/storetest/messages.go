package storetest

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/deadletteroffice/dlo/internal/segment"
	"modernc.org/sqlite"
)

// Bodies is an SQL table with the columns letter, properties and body, for letters that are not
// purged. If a message is damaged or lost, properties and body are NULL.
const Bodies = `(SELECT l.id AS letter, message_part(s.data, s.size, l.id, 'properties') AS properties,
	message_part(s.data, s.size, l.id, 'body') AS body FROM letters l LEFT JOIN segments s ON s.id = l.segment
	WHERE l.segment IS NOT NULL)`

func init() {
	sqlite.MustRegisterDeterministicScalarFunction("message_part", 4, messagePart)
}

func messagePart(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	data, _ := args[0].([]byte)
	size, _ := args[1].(int64)
	messages, err := segment.Unpack(data, int(size))
	m, ok := messages[args[2].(int64)]
	if err != nil || !ok {
		return nil, nil
	}
	switch args[3] {
	case "properties":
		return m.Properties, nil
	case "body":
		return m.Body, nil
	case "size":
		return int64(m.Size), nil
	}
	return nil, fmt.Errorf("a message has no part %v", args[3])
}

// Change stores the segment of a letter again after "change" has changed the message of the letter.
// If "change" returns false, the message is left out.
func Change(t testing.TB, db *sql.DB, letter int64, change func(m *segment.Message) bool) {
	t.Helper()
	var id int64
	var size int
	var data []byte
	if err := db.QueryRow(`SELECT id, size, data FROM segments WHERE id = (SELECT segment FROM letters WHERE id = $1)`,
		letter).Scan(&id, &size, &data); err != nil {
		t.Fatal(err)
	}
	messages, err := segment.Unpack(data, size)
	if err != nil {
		t.Fatal(err)
	}
	var raw []byte
	for serial, m := range messages {
		if serial != letter || change(&m) {
			raw = segment.Append(raw, serial, m)
		}
	}
	if _, err := db.Exec(`UPDATE segments SET size = $2, kept = $2, data = $3 WHERE id = $1`, id, len(raw),
		segment.Pack(raw)); err != nil {
		t.Fatal(err)
	}
}

// Noise returns random bytes, which the store cannot compress.
func Noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}
