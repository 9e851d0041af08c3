package deadletter_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

const samples = "testdata/rabbitmq"

// delivery is a recorded delivery in the form that testdata/rabbitmq/README.md describes.
type delivery struct {
	deadletter.Arrival
	Headers json.RawMessage // in the form of the file
}

// deliveries reads a file of samples, which contains one delivery or an array of deliveries.
func deliveries(t testing.TB, name string) []delivery {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(samples, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		text = append(append([]byte("["), text...), ']')
	}
	var list []struct {
		Exchange        string          `json:"exchange"`
		RoutingKey      string          `json:"routing_key"`
		Redelivered     bool            `json:"redelivered"`
		MessageCount    int             `json:"message_count"`
		ContentType     string          `json:"content_type"`
		ContentEncoding string          `json:"content_encoding"`
		Headers         json.RawMessage `json:"headers"`
		DeliveryMode    uint8           `json:"delivery_mode"`
		Priority        uint8           `json:"priority"`
		CorrelationID   string          `json:"correlation_id"`
		ReplyTo         string          `json:"reply_to"`
		Expiration      string          `json:"expiration"`
		MessageID       string          `json:"message_id"`
		Timestamp       time.Time       `json:"timestamp"`
		Type            string          `json:"type"`
		UserID          string          `json:"user_id"`
		AppID           string          `json:"app_id"`
		Body            []byte          `json:"body_base64"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var out []delivery
	for _, in := range list {
		var headers deadletter.Typed
		if err := json.Unmarshal(in.Headers, &headers); err != nil {
			t.Fatalf("%s: headers: %v", name, err)
		}
		table, ok := headers.Value.(deadletter.Table)
		if !ok {
			t.Fatalf("%s: headers are a %T", name, headers.Value)
		}
		out = append(out, delivery{deadletter.Arrival{
			Exchange: in.Exchange, RoutingKey: in.RoutingKey, Redelivered: in.Redelivered, Body: in.Body,
			Properties: deadletter.Properties{
				ContentType: in.ContentType, ContentEncoding: in.ContentEncoding, Headers: table,
				DeliveryMode: in.DeliveryMode, Priority: in.Priority,
				CorrelationID: in.CorrelationID, ReplyTo: in.ReplyTo, Expiration: in.Expiration,
				MessageID: in.MessageID, Timestamp: in.Timestamp, Type: in.Type,
				UserID: in.UserID, AppID: in.AppID,
			},
		}, in.Headers})
	}
	return out
}

// names returns the names of the samples.
func names(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(samples, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".json")
	}
	if len(files) == 0 {
		t.Fatal("no samples in " + samples)
	}
	return files
}

// deathLine formats a death as one line, in the form "queue reason count from exchange by keys at
// time".
func deathLine(d deadletter.Death) string {
	return fmt.Sprintf(
		"%s %s %d from %q by %s at %s", d.Queue, d.Reason, d.Count, d.Exchange, strings.Join(d.RoutingKeys, ","),
		d.FirstAt.Format(time.DateTime),
	)
}

func originOf(queue, exchange, key string) deadletter.Origin {
	return deadletter.Origin{Queue: queue, Exchange: exchange, RoutingKey: key}
}

func retryQueue(queue string) bool { return queue == "e.cy.retry" || deadletter.OwnQueue(queue) }

// TestReadDeathsOfEverySample compares what is read from each delivery of the samples with
// deaths.golden: the reason and the origin of the letter, and then its deaths, most recent first.
// The queue e.cy.retry counts as one of dlo's own queues. Counts, flags and first-death headers
// differ between versions of RabbitMQ, but reason and origin do not.
func TestReadDeathsOfEverySample(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, name := range names(t) {
		for i, d := range deliveries(t, name) {
			deaths, origin := deadletter.ReadDeaths(d.Properties.Headers, retryQueue)
			reason, at := deadletter.LastDeath(d.Properties.Headers, deaths, origin.Queue)
			if at.IsZero() {
				t.Errorf("delivery %d of %s has no time of its last death", i, name)
			}
			fmt.Fprintf(
				&all, "%s: %s in %s from %q by %s", name, reason, origin.Queue, origin.Exchange, origin.RoutingKey,
			)
			for _, death := range deaths {
				fmt.Fprintf(&all, "; %s", deathLine(death))
			}
			all.WriteByte('\n')
		}
	}
	testenv.GoldenText(t, "rabbitmq/deaths.golden", all.String())
}

func TestAQueueIsOnlyOursWhenTheCallerSaysSo(t *testing.T) {
	t.Parallel()
	none := func(string) bool { return false }
	all := func(string) bool { return true }
	for _, version := range []string{"3.10.8", "4.0.5", "4.3.6"} {
		d := deliveries(t, version+"-ttlcycle-quorum")[0]
		deaths, origin := deadletter.ReadDeaths(d.Properties.Headers, none)
		if newest, mayDelay := deadletter.Newest(
			d.Properties.Headers, deaths, none,
		); newest.Queue != "e.cy.retry" || !mayDelay {
			t.Errorf("%s: newest %+v, may only have delayed it: %t", version, newest, mayDelay)
		}
		if diff := cmp.Diff(originOf("e.cy.work", "", "e.cy.work"), origin); diff != "" {
			t.Errorf("%s: %s", version, diff)
		}
		if reason, _ := deadletter.LastDeath(d.Properties.Headers, deaths, origin.Queue); reason != "rejected" {
			t.Errorf("%s: reason %q", version, reason)
		}
		deaths, origin = deadletter.ReadDeaths(d.Properties.Headers, all)
		if len(deaths) != 2 || origin != (deadletter.Origin{}) {
			t.Errorf("%s: %d deaths and origin %+v where every queue is ours", version, len(deaths), origin)
		}
	}
}

// TestTheFirstDeathIsNotTheOrigin checks a message that was published to another queue with all its
// headers. On RabbitMQ 3.10, the header x-first-death-queue then still names the first queue. A
// requeue must not send the letter to that first queue.
func TestTheFirstDeathIsNotTheOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version, first string
		deaths         int
	}{{"3.10.8", "e.s.1", 2}, {"4.0.5", "e.s.2", 1}, {"4.3.6", "e.s.2", 1}} {
		d := deliveries(t, c.version+"-stale-kept-headers-other-queue-quorum")[0]
		if got := d.Properties.Headers["x-first-death-queue"]; got != c.first {
			t.Errorf("%s: x-first-death-queue is %v, so the sample does not show what this test is for", c.version, got)
		}
		deaths, origin := deadletter.ReadDeaths(d.Properties.Headers, deadletter.OwnQueue)
		if len(deaths) != c.deaths || origin.Queue != "e.s.2" {
			t.Errorf("%s: %d deaths, origin %q", c.version, len(deaths), origin.Queue)
		}
	}
}

func TestSamplesSurviveTheStore(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		for i, d := range deliveries(t, name) {
			encoded, err := d.Properties.Encode()
			if err != nil {
				t.Fatalf("%s %d: %v", name, i, err)
			}
			got, err := deadletter.DecodeProperties(encoded)
			if err != nil {
				t.Fatalf("%s %d: %v", name, i, err)
			}
			if diff := cmp.Diff(d.Properties, got); diff != "" {
				t.Errorf("%s %d (-want +got):\n%s", name, i, diff)
			}
		}
	}
}

func TestSamplesSurviveTypedJSON(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		for i, d := range deliveries(t, name) {
			text, err := json.Marshal(deadletter.Typed{Value: d.Properties.Headers})
			if err != nil {
				t.Fatalf("%s %d: %v", name, i, err)
			}
			var got, want any
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(d.Headers, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %d (-file +written):\n%s", name, i, diff)
			}
		}
	}
}

// TestSamplesCanBeRequeued checks that the delivery in every sample can be requeued. The result of
// Sanitise must be publishable, and must contain no header of the broker.
func TestSamplesCanBeRequeued(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		for i, d := range deliveries(t, name) {
			p, _ := deadletter.Sanitise(d.Properties)
			withHeaders(&p)
			if err := deadletter.Publishable(p); err != nil {
				t.Errorf("%s %d: %v", name, i, err)
			}
			for k := range p.Headers {
				if deadletter.BrokerOwned(k) || k == "CC" {
					t.Errorf("%s %d: header %s is still there", name, i, k)
				}
			}
			if app, ok := d.Properties.Headers["app"]; ok && p.Headers["app"] != app {
				t.Errorf("%s %d: header app became %v", name, i, p.Headers["app"])
			}
		}
	}
}

// TestAPlaceholderTokenIsNoIdentity checks samples that contain a placeholder where dlo's token
// would be. A placeholder does not have the format of a token, so dlo must treat the deliveries as
// foreign ones.
func TestAPlaceholderTokenIsNoIdentity(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.10.8", "4.0.5", "4.3.6"} {
		for i, d := range deliveries(t, version+"-republish-own-header-quorum") {
			if got := d.Properties.Headers[deadletter.HeaderAttempt]; i > 0 && got != int64(i) {
				t.Errorf(
					"%s: header dlo-attempt of delivery %d is %v: our headers should survive dead-lettering", version,
					i, got,
				)
			}
			if id, token, ok := d.Identity(); ok {
				t.Errorf("%s: delivery %d has the identity %s %s", version, i, id, token)
			}
		}
	}
}

func TestSampleBodies(t *testing.T) {
	t.Parallel()
	d := deliveries(t, "3.10.8-death-classic-rejected-dlq-classic")[0]
	if got := base64.StdEncoding.EncodeToString(d.Body); got != "aGVsbG8=" {
		t.Errorf("body %s", got)
	}
	if d.Properties.Timestamp != time.Unix(1700000000, 0).UTC() || d.Properties.Priority != 3 ||
		d.Properties.DeliveryMode != 2 || d.Properties.AppID != "shop" {
		t.Errorf("%+v", d.Properties)
	}
}
