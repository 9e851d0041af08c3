package system

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	neturl "net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// say publishes annotations to their queue and waits for the confirms. It encodes each value as
// JSON, except that it sends a []byte unchanged.
func (a *audit) say(list ...any) {
	a.t.Helper()
	ch := a.channel()
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		a.t.Fatal(err)
	}
	var waiting []*amqp.DeferredConfirmation
	for _, one := range list {
		body, ok := one.([]byte)
		if !ok {
			body, _ = json.Marshal(one)
		}
		c, err := ch.PublishWithDeferredConfirm("", "dlo.annotations", true, false, amqp.Publishing{
			ContentType: "application/json", DeliveryMode: 2, Body: body,
		})
		if err != nil {
			a.t.Fatal(err)
		}
		waiting = append(waiting, c)
	}
	for _, c := range waiting {
		if !c.Wait() {
			a.t.Fatal("the broker refused an annotation")
		}
	}
}

// awaitAnnotationsQueue waits until dlo has declared its annotations queue.
func (a *audit) awaitAnnotationsQueue() {
	a.t.Helper()
	eventually(a.t, "the queue of annotations", func() bool {
		ch, err := a.conn.Channel()
		if err != nil {
			a.t.Fatal(err)
		}
		defer ch.Close()
		_, err = ch.QueueDeclarePassive("dlo.annotations", true, false, false, false, nil)
		return err == nil
	})
}

// errors returns the error text of each letter. The key is the body of the letter.
func (p *child) errors() map[string]string {
	p.t.Helper()
	found := map[string]string{}
	p.rows(`SELECT CAST(b.body AS TEXT), l.error FROM letters l
		JOIN `+storetest.Bodies+` b ON b.letter = l.id`, nil, func(rows *sql.Rows) error {
		var body, text string
		err := rows.Scan(&body, &text)
		found[body] = text
		return err
	})
	return found
}

const (
	noRetries   = "default: {retry: {delays: []}}\n"
	settledRead = `SELECT (SELECT count(*) FROM unread) + (SELECT count(*) FROM rereads) + (SELECT count(*)
		FROM unindexed) + (SELECT count(*) FROM letters WHERE state = 'received')`
	joinedOnce = `SELECT count(*) FROM (SELECT letter FROM events WHERE kind = 'annotated'
		GROUP BY letter HAVING count(*) = 1)`
	joinedMore = `SELECT count(*) FROM (SELECT letter FROM events WHERE kind = 'annotated'
		GROUP BY letter HAVING count(*) > 1)`
)

// TestAnAnnotationAndItsLetterMeet checks that annotations are joined to their letters. The
// consumer sends the annotation before or after it rejects the message, and dlo is stopped in
// between. Annotations arrive through the queue, the API and the command line.
func TestAnAnnotationAndItsLetterMeet(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(t, url, noRetries)
	p.Start("")
	p.Draining()
	a.awaitAnnotationsQueue()
	said := func(id, message string) map[string]any {
		return map[string]any{
			"message_id": id, "queue": "work", "error_type": "E", "message": message, "stack": "E\n\tat work",
			"service": "worker", "version": "7",
		}
	}
	body := "by its body"
	sum := sha256.Sum256([]byte(body))

	a.say(said("first", "said before"), map[string]any{
		"body_sha256": hex.EncodeToString(sum[:]), "message": "said of a body",
	})
	eventually(t, "the annotations are stored", func() bool { return p.count("annotations", "") == 2 })
	p.Stop()
	p.Start("")
	p.Draining()
	a.work()
	letters := []string{"first", "second", "third"}
	a.publish(len(letters), func(i int) (string, string) { return letters[i], letters[i] })
	a.publish(1, func(int) (string, string) { return body, "" })
	eventually(t, "all letters dead", func() bool { return p.letters("dead") == 4 })
	p.Stop()
	a.say(said("second", "said after, while dlo was away"))
	p.Start("")
	out, _ := p.dlo(
		t.Context(), 0, "", "annotations", "add", "--message-id", "third", "--error-type", "E", "--message",
		"said by command line", "--service", "shell",
	)
	if !strings.Contains(out, "1 annotations stored; 1 letters were waiting for one") {
		t.Error(out)
	}
	want := map[string]string{
		"first": "E: said before", "second": "E: said after, while dlo was away", "third": "E: said by command line",
		body: "said of a body",
	}
	eventually(t, "every letter has its error", func() bool { return fmt.Sprint(p.errors()) == fmt.Sprint(want) })
	eventually(t, "all is read", func() bool { return p.ask(settledRead) == 0 })
	if n := p.ask(joinedOnce); n != 4 {
		t.Errorf("%d letters were annotated once", n)
	}
	if n := p.ask(`SELECT count(DISTINCT grp) FROM letters`); n != 4 {
		t.Errorf("%d groups", n)
	}
	id := p.ids(`SELECT l.id, l.random FROM letters l JOIN ` + storetest.Bodies + ` b ON b.letter = l.id
		WHERE CAST(b.body AS TEXT) = 'second'`)[0]
	if _, text := p.get("/api/v1/letters/" + string(id)); !strings.Contains(
		text,
		`"failure":{"by":"annotation","type":"E","message":"said after, while dlo was away","stack":"E\n\tat work","service":"worker","version":"7"}`,
	) {
		t.Error(text)
	}
	if _, page := p.get("/letters/" + string(id)); !strings.Contains(page, "reported by worker 7") {
		t.Error("the page does not say who reported it")
	}
	if out, errs := p.dlo(
		t.Context(), 2, `{"message": "x"}`, "annotations", "add", "-",
	); !strings.Contains(errs, "message_id: nothing says which message") {
		t.Error(out, errs)
	}
	if out, _ := p.dlo(
		t.Context(), 0, `[{"message_id": "nobody", "message": "x"}]`, "annotations", "add", "-", "-o", "jsonl",
	); out != `{"new":1,"again":0,"joined":0}`+"\n" {
		t.Error(out)
	}
	if _, metrics := p.get("/metrics"); !strings.Contains(metrics, `dlo_annotations_total{outcome="new"} 3`) ||
		!strings.Contains(metrics, `dlo_annotations_total{outcome="joined"} 2`) {
		t.Error("the metrics do not count annotations")
	}
	p.dlo(t.Context(), 2, "", "queues", "drain", "dlo.annotations")
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// reporting returns a worker that rejects every message and sends a reason for each. It also
// returns a running dlo without retries.
func reporting(t *testing.T) (*audit, *child) {
	t.Helper()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(t, url, noRetries)
	p.Start("")
	p.Draining()
	a.awaitAnnotationsQueue()
	a.work()
	return a, p
}

// TestHostileAnnotations fills the queue of annotations with invalid ones. dlo must not log any of
// their content. They must not block the queue, and the valid annotations behind them must be
// joined to their letters.
func TestHostileAnnotations(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	a, p := reporting(t)
	hostile := []any{
		[]byte(""), []byte("secret"), []byte("null"), []byte("[]"), []byte(`"secret"`), []byte("\x00\xff\xfe"),
		[]byte(`{"message_id": 7, "message": ["secret"]}`), []byte(`{"message_id": "m"}`),
		[]byte(`{"message": "secret"}`), []byte(`{"message_id": {"a": {}}, "message": "secret", "at": "secret"}`),
		[]byte(`{"message_id": "m", "x": ` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + "}"),
		[]byte(`{"message_id": "m", "message": "` + strings.Repeat("secret", 10<<20/6) + `"}`),
		[]byte(`{"message_id": "` + strings.Repeat("m", 300) + `", "message": "secret"}`),
	}
	refused := len(hostile)
	for range 200 {
		hostile = append(hostile, []byte("{"))
	}
	refused += 200
	hostile = append(hostile, map[string]any{
		"message_id": "m0", "message": "<script>alert(1)</script>\x00\u202e\x1b[31m",
		"stack": strings.Repeat("<b>\x00", 2500), "service": "<img src=x onerror=alert(1)>",
		"version": strings.Repeat("9", 6000),
	})
	a.say(hostile...)
	a.publish(1, func(int) (string, string) { return "letter", "m0" })
	eventually(t, "the letter has its error", func() bool {
		return p.count("letters", `annotation > 0 AND error <> ''`) == 1 && p.ask(settledRead) == 0
	})
	eventually(t, "the queue is empty, and what was refused is counted", func() bool {
		_, metrics := p.get("/metrics")
		return ready(t, a.conn, "dlo.annotations") == 0 &&
			strings.Contains(metrics, fmt.Sprintf(`dlo_annotations_total{outcome="refused"} %d`, refused))
	})
	if text := p.errors()["letter"]; text != `<script>alert(1)</script>\x00\u202e\x1b[31m` {
		t.Errorf("%q", text)
	}
	id := p.ids(`SELECT id, random FROM letters`)[0]
	code, page := p.get("/letters/" + string(id))
	if code != 200 || strings.Contains(page, "<script>alert") || strings.Contains(page, "<img src=x") ||
		strings.Contains(page, "\x00") || len(page) > 300_000 {
		t.Errorf("%d, %d bytes", code, len(page))
	}
	if strings.Contains(p.Log(), "secret") {
		t.Error("the log holds what stood in an annotation")
	}
	if n := strings.Count(p.Log(), "annotations refused"); n == 0 || n > 3 {
		t.Errorf("%d lines say that %d annotations were refused", n, refused)
	}
	if n := p.count("annotations", ""); n != 1 {
		t.Errorf("%d annotations are stored", n)
	}
}

// TestAnnotationsSurviveKills kills dlo repeatedly after it has committed annotations and before it
// acknowledges them. Half of the letters arrive before the kills, and the others after them. No
// annotation may be lost or joined twice.
func TestAnnotationsSurviveKills(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	a, p := reporting(t)
	const letters = 100
	said := func(i int) any {
		return map[string]any{
			"message_id": fmt.Sprint(i), "queue": "work", "message": fmt.Sprintf("reason <%d>", i), "service": "worker",
		}
	}
	a.publish(letters/2, func(i int) (string, string) { return fmt.Sprint("letter ", i), fmt.Sprint(i) })
	eventually(t, "half of the letters dead", func() bool { return p.letters("dead") == letters/2 })
	p.Kill9()
	for i := range letters {
		a.say(said(i))
	}
	for _, point := range []string{
		"annotations: stored=1", "annotations: stored=1", "annotations: stored=1", "annotations: stored=1",
	} {
		p.Start(point)
		p.Crashed(point)
	}
	p.Start("")
	p.Draining()
	a.publish(
		letters/2,
		func(i int) (string, string) { return fmt.Sprint("letter ", letters/2+i), fmt.Sprint(letters/2 + i) },
	)
	eventually(t, "every letter has an error", func() bool {
		return p.count("letters", `error <> '' AND annotation > 0`) == letters && p.ask(settledRead) == 0
	})
	for body, text := range p.errors() {
		if want := fmt.Sprintf("reason <%s>", strings.TrimPrefix(body, "letter ")); text != want {
			t.Errorf("%s: %q", body, text)
		}
	}
	if once, more := p.ask(joinedOnce), p.ask(joinedMore); once != letters || more != 0 {
		t.Errorf("%d of %d letters were annotated once, %d more often", once, letters, more)
	}
	if rows, again := p.count("annotations", ""), p.count("annotations", `reports > 1`); rows != letters || again == 0 {
		t.Errorf("%d annotations of %d; %d came twice", rows, letters, again)
	}
	eventually(t, "the queue is empty", func() bool { return ready(t, a.conn, "dlo.annotations") == 0 })
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestWithoutTheRightToAnnotations runs dlo as a RabbitMQ user that may neither declare nor read
// the queue of annotations. dlo must report this once. The test also runs dlo with this queue
// disabled in the configuration.
func TestWithoutTheRightToAnnotations(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	if err := node.API("PUT", "/api/users/limited", map[string]string{
		"password": "limited", "tags": "",
	}, nil); err != nil {
		t.Fatal(err)
	}
	own := `^dlo\.(letters|dlx|epoch\..*)$`
	if err := node.API("PUT", "/api/permissions/"+neturl.PathEscape(vhost)+"/limited", map[string]string{
		"configure": own, "write": ".*", "read": own,
	}, nil); err != nil {
		t.Fatal(err)
	}
	p := newChild(t, url, noRetries)
	p.env = []string{"DLO_AMQP_URL=" + strings.Replace(url, "guest:guest", "limited:limited", 1)}
	p.Start("")
	p.Draining()
	eventually(t, "the reason", func() bool { return strings.Contains(p.Log(), "annotations not connected") })
	a.work()
	a.publish(3, func(i int) (string, string) { return fmt.Sprint(i), "" })
	eventually(t, "the letters are stored all the same", func() bool { return p.letters("dead") == 3 })
	time.Sleep(3 * time.Second)
	if n := strings.Count(p.Log(), "annotations not connected"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	_, other := testenv.VHost(t)
	b := newAudit(t, other, "work", nil)
	none := newChild(t, other, "brokers: [{url: '%AMQP%', annotations: ''}]\n"+noRetries)
	none.Start("")
	none.Draining()
	b.work()
	b.publish(1, func(int) (string, string) { return "x", "m" })
	eventually(t, "the letter is stored", func() bool { return none.letters("dead") == 1 })
	ch := b.channel()
	if _, err := ch.QueueDeclarePassive("dlo.annotations", true, false, false, false, nil); err == nil {
		t.Error("the queue was declared although there is to be none")
	}
	if code, _ := none.post("/api/v1/annotations", map[string]string{"message_id": "m", "message": "x"}); code != 200 {
		t.Errorf("the API takes none: %d", code)
	}
}
