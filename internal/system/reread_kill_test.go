package system

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"google.golang.org/protobuf/encoding/protowire"
)

// placedOrder returns the body of a message OrderPlaced, as ordersSource defines it.
func placedOrder(n int) []byte {
	city := []string{"Berlin", "Bonn"}[n%2]
	address := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), fmt.Sprintf("Hauptstr. %d", n))
	address = protowire.AppendString(protowire.AppendTag(address, 2, protowire.BytesType), city)
	body := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), fmt.Sprintf("order-%d", n))
	body = protowire.AppendVarint(protowire.AppendTag(body, 2, protowire.VarintType), uint64(1+n))
	return protowire.AppendBytes(protowire.AppendTag(body, 3, protowire.BytesType), address)
}

// receiveInto stores letters in windows, as ingest does. The function "arrival" makes the n-th
// letter. receiveInto returns the total bytes of all bodies and properties.
func receiveInto(t *testing.T, s *store.Store, letters int, arrival func(n int) deadletter.Arrival) (received int64) {
	t.Helper()
	for n, number := 0, int64(1); n < letters; number++ {
		w := deadletter.Window{
			Session: 1, Number: number, Broker: "main", VHost: "/", Inbox: "dlo.letters",
			Uncertain: deadletter.UncertainHold, Horizon: time.Minute, HorizonRows: 1000,
		}
		for ; n < letters && len(w.Arrivals) < 500; n++ {
			a := arrival(n)
			a.Tag, a.Exchange, a.RoutingKey = uint64(len(w.Arrivals)+1), "dlo.dlx", "k"
			print, err := a.Print()
			if err != nil {
				t.Fatal(err)
			}
			a.Fingerprint = print
			properties, err := a.Properties.Encode()
			if err != nil {
				t.Fatal(err)
			}
			received += int64(len(a.Body) + len(properties))
			w.Arrivals = append(w.Arrivals, a)
		}
		r, err := s.Receive(context.Background(), w)
		if err == nil {
			err = s.SettleWindow(context.Background(), r.Window)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return received
}

// rejectedFrom returns the headers of a letter that was rejected in the given queue.
func rejectedFrom(queue string) deadletter.Table {
	return deadletter.Table{
		"x-death": []any{
			deadletter.Table{
				"queue":        queue,
				"exchange":     "events",
				"reason":       "rejected",
				"count":        int64(1),
				"routing-keys": []any{"k"},
				"time":         time.Now(),
			},
		},
		"x-first-death-queue": queue, "x-first-death-reason": "rejected", "x-first-death-exchange": "events",
	}
}

// recounts are queries that compute the numbers of the store again. Each query returns how many of
// them are wrong.
var recounts = map[string]string{
	"counters": `WITH kept AS (SELECT state, origin, type, reason, grp, severity, n FROM counters WHERE n <> 0),
			truth AS (SELECT state, origin, type, reason, grp, severity, count(*) AS n FROM letters
			GROUP BY 1, 2, 3, 4, 5, 6)
		SELECT (SELECT count(*) FROM (SELECT * FROM kept EXCEPT SELECT * FROM truth)) + (SELECT count(*) FROM (SELECT *
		FROM truth EXCEPT SELECT * FROM kept))`,
	"rollups": `WITH kept AS (SELECT bucket, grp, state, n FROM rollups WHERE n <> 0), truth AS
		(SELECT received_at / 900000 AS bucket, grp, state, count(*) AS n FROM letters GROUP BY 1, 2, 3)
		SELECT (SELECT count(*) FROM (SELECT * FROM kept EXCEPT SELECT * FROM truth)) + (SELECT count(*) FROM (SELECT *
		FROM truth EXCEPT SELECT * FROM kept))`,
	"readings": `WITH kept AS (SELECT origin, type, reading, n FROM readings WHERE n <> 0),
			truth AS (SELECT origin, type, reading, count(*) AS n FROM letters WHERE state NOT IN ('received', 'purged')
			GROUP BY 1, 2, 3)
		SELECT (SELECT count(*) FROM (SELECT * FROM kept EXCEPT SELECT * FROM truth)) + (SELECT count(*) FROM (SELECT *
		FROM truth EXCEPT SELECT * FROM kept))`,
	"letters that search does not know": `SELECT count(*) FROM letters WHERE id NOT IN (SELECT rowid
		FROM words)`,
	"letters that were recorded more than once": `SELECT count(*) FROM (SELECT letter FROM events
		WHERE kind = 'read again' GROUP BY letter HAVING count(*) > 1)`,
}

// TestReadingAgainSurvivesKills uploads a schema, so that dlo reads many letters of an unknown type
// again. It kills dlo at both crash points and at random. In the end, each letter must have been
// read, and its reading must have been recorded once.
func TestReadingAgainSurvivesKills(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	letters, kills := 10_000, 6
	if soak() {
		letters, kills = 1_000_000, 100
	}
	random := seeded(t)
	p := newChild(t, "", away+"search: {fields: [to.city]}\n")
	filling, err := store.Open(t.Context(), p.store, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	receiveInto(t, filling, letters, func(n int) deadletter.Arrival {
		return deadletter.Arrival{
			Body: placedOrder(n),
			Properties: deadletter.Properties{
				DeliveryMode: 2, MessageID: fmt.Sprint(n), Headers: rejectedFrom("orders"),
			},
		}
	})
	if err := filling.Close(); err != nil {
		t.Fatal(err)
	}

	p.Start("")
	eventually(t, "all letters dead and found by their words", func() bool {
		return p.ask(`SELECT coalesce(sum(n), 0) FROM counters
			WHERE state = 'dead'`) == letters && p.count("unindexed", "") == 0
	})
	if n := p.count("letters", `type = 0 AND reading = $1`, string(deadletter.ReadUnknown)); n != letters {
		t.Fatalf("%d of %d letters are unknown before there is a schema", n, letters)
	}
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}

	// The map "held" counts how often dlo died while it was reading a letter. After three times,
	// dlo no longer reads that letter, because the letter may be the cause.
	held := map[uint64]int{}
	left := func() int { return p.count("unread", "") }
	died := func(at string) {
		t.Helper()
		noted, err := os.ReadFile(p.store + ".reading")
		if err != nil || len(noted) != 16 {
			t.Fatalf("%x: %v", noted, err)
		}
		serial := binary.BigEndian.Uint64(noted[8:])
		if serial != 0 {
			held[serial]++
		}
		t.Logf("killed %s: %d letters left, one was being read: %t", at, left(), serial != 0)
	}
	crash := func(point string) {
		t.Helper()
		p.Crashed("the crash at " + point)
		died("at " + point)
	}
	p.Start("read: begun=3")
	answer, err := http.Post(
		p.url+"/api/v1/types?name=orders&filename=orders.proto", "application/octet-stream",
		strings.NewReader(ordersSource),
	)
	if err == nil { // with an error, dlo died before it responded
		said, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusCreated {
			t.Fatalf("%d %s", answer.StatusCode, said)
		}
	}
	crash("read: begun=3")
	if n := left(); n == 0 || n >= letters {
		t.Fatalf("%d letters are left of %d", n, letters)
	}
	for _, point := range []string{"read: recorded=1", "read: recorded=20", "read: recorded=5"} {
		p.Start(point)
		crash(point)
	}
	for range kills {
		if left() == 0 {
			break
		}
		p.Start("")
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		p.Kill9()
		died("at random")
	}

	p.Start("")
	eventually(t, "nothing is left to be read", func() bool {
		return p.ask(`SELECT (SELECT count(*) FROM unread) + (SELECT count(*) FROM rereads)`) == 0
	})
	eventually(t, "search knows the letters as they are", func() bool { return p.count("unindexed", "") == 0 })
	suspects := 0
	for _, times := range held {
		if times >= deadletter.MaxCrashes {
			suspects++ // a coincidence, because the kills are random
		}
	}
	if n := p.count("letters", `reading = $1`, string(deadletter.ReadCrashed)); n != suspects {
		t.Errorf("%d letters are undecodable; dlo died with %d of them in hand three times", n, suspects)
	}
	if n := p.ask(`SELECT count(*) FROM letters l JOIN types y ON y.id = l.type WHERE y.name = 'shop.v1.OrderPlaced'
		AND l.reading = $1 AND l.state = 'dead' AND l.crashes = 0`,
		string(deadletter.ReadByMatch)); n != letters-suspects {
		t.Errorf("%d of %d letters have their type", n, letters-suspects)
	}
	for name, query := range recounts {
		if n := p.ask(query); n != 0 {
			t.Errorf("%s: %d are wrong", name, n)
		}
	}
	if n := p.events("read again"); n != letters-suspects {
		t.Errorf("%d letters have it in their history", n)
	}
	for q, want := range map[string]int{
		"type:shop.v1.OrderPlaced state:dead": letters - suspects, "state:dead": letters,
	} {
		code, body := p.get("/api/v1/letters/count?exact=1&q=" + url.QueryEscape(q))
		if code != 200 || !strings.Contains(body, fmt.Sprintf(`"count":%d,`, want)) {
			t.Errorf("%s: %d %s, want %d", q, code, body, want)
		}
	}
	if suspects == 0 {
		code, body := p.get("/api/v1/letters/count?exact=1&q=" + url.QueryEscape("body.to.city:Bonn"))
		if code != 200 || !strings.Contains(body, fmt.Sprintf(`"count":%d,`, letters/2)) {
			t.Errorf("by a decoded field: %d %s", code, body)
		}
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// texts runs a query on the store's file and returns the texts that it selects.
func (p *child) texts(query string, args ...any) []string {
	p.t.Helper()
	var list []string
	p.rows(query, args, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		list = append(list, text)
		return err
	})
	return list
}
