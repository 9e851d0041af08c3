package system

import (
	"fmt"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestAFloodOfAnnotationsUnderKills publishes 20,000 annotations while letters of the same consumer
// arrive, and kills dlo several times. Every letter must be stored once. No annotation may be lost
// or stored twice, and each must belong to the right letter.
func TestAFloodOfAnnotationsUnderKills(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	a, p := reporting(t)
	const flood, letters, kills = 20_000, 200, 4
	said := make([]any, flood)
	for i := range said {
		said[i] = map[string]any{
			"message_id": fmt.Sprint(i), "queue": "work", "message": fmt.Sprintf("reason <%d>", i), "service": "worker",
		}
	}
	for n := range kills {
		part := flood / kills
		a.say(said[n*part : (n+1)*part]...)
		a.publish(letters/kills, func(i int) (string, string) {
			id := n*letters/kills + i
			return fmt.Sprint("letter ", id), fmt.Sprint(id)
		})
		eventually(t, "some of the flood is in", func() bool { return p.count("annotations", "") > n*part })
		p.Kill9()
		p.Start("")
		p.Draining()
	}
	eventually(t, "all letters stored", func() bool { return p.letters("dead") == letters })
	eventually(
		t, "all annotations stored",
		func() bool { return p.count("annotations", "") == flood && p.ask(settledRead) == 0 },
	)
	eventually(t, "their queue is empty", func() bool { return ready(t, a.conn, "dlo.annotations") == 0 })
	for body, text := range p.errors() {
		var id int
		if _, err := fmt.Sscanf(body, "letter %d", &id); err != nil || text != fmt.Sprintf("reason <%d>", id) {
			t.Errorf("%s: %q", body, text)
		}
	}
	if n := p.count("annotations", ""); n != flood {
		t.Errorf("%d annotations of %d", n, flood)
	}
	if surplus, _ := a.checkStore(p); surplus != 0 {
		t.Errorf("%d rows more than letters", surplus)
	}
}
