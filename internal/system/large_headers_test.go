package system

import (
	"fmt"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestALargeHeaderAmongGoodLetters publishes a thousand letters. One of them has a header of
// 131,000 bytes, which is the most that a publisher can send. When this letter dies, its headers
// become larger than a frame. dlo is killed after it has fetched, committed, decided and
// acknowledged the letter.
//
// All letters must be stored once. The letter with the large header must be held for that reason,
// and must be sent after an edit. All others must be retried.
func TestALargeHeaderAmongGoodLetters(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(t, url, fast)
	p.Start("")
	p.Draining()
	p.Stop()
	const letters = 1_000
	letter := func(first int) func(int) (string, string) {
		return func(i int) (string, string) { return fmt.Sprintf("letter %d", first+i), fmt.Sprint(first + i) }
	}
	a.publish(5, letter(0))
	a.header = amqp.Table{"x-big": strings.Repeat("e", 131_000), "x-small": "stays"}
	a.publish(1, func(int) (string, string) { return "the large one", "" })
	a.header = nil
	a.publish(letters-5, letter(5))
	a.work()
	eventually(t, "all letters in the inbox", func() bool { return ready(t, a.conn, "dlo.letters") == letters+1 })
	// crash points in the first window
	for _, crash := range []string{"ingest: fetched=1", "ingest: committed=1", "ingest: decided=1", "ingest: acked=1"} {
		p.Start(crash)
		p.Crashed(crash)
	}
	p.Start("")
	p.Draining()
	eventually(
		t, "all good letters back",
		func() bool { return a.acceptedLetters() >= letters && p.letters("settled") == letters },
	)
	if rows, held, open := p.letters(), p.letters("held"), p.count(
		"windows", `settled_at IS NULL`,
	); rows != letters+1 || held != 1 || open != 0 {
		t.Errorf("%d rows, %d held, %d windows open", rows, held, open)
	}
	if strings.Contains(p.Log(), "inbox not connected") {
		t.Error("a session could not begin")
	}
	ids := p.ids(`SELECT id, random FROM letters WHERE state = 'held'`)
	if len(ids) != 1 {
		t.Fatalf("%d letters are held", len(ids))
	}
	path := "/api/v1/letters/" + string(ids[0])
	if _, text := p.get(path); !strings.Contains(text, `header \"x-big\" takes 131011 of them: shorten or remove it`) {
		t.Errorf("it is held without its header named: %.2000s", text)
	}
	if code, text := p.post(path+"/revisions", map[string]any{
		"headers": map[string]any{"x-big": nil},
		"reason":  "too large",
		"requeue": true,
	}); code != 201 {
		t.Fatalf("the edit: %d %s", code, text)
	}
	eventually(
		t, "the large one is back",
		func() bool { return a.acceptedLetters() == letters+1 && p.letters("settled") == letters+1 },
	)
	if surplus, duplicates := a.checkAll(p); surplus != 0 || duplicates > 128 {
		t.Errorf("%d rows more than letters, %d duplicate copies", surplus, duplicates)
	}
}
