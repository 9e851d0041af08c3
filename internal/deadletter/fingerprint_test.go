package deadletter_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"pgregory.net/rapid"
)

func fingerprintOf(t interface{ Fatal(args ...any) }, a deadletter.Arrival) deadletter.Fingerprint {
	f, err := a.Print()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFingerprintsTellDeliveriesApart(t *testing.T) {
	t.Parallel()
	base := func() deadletter.Arrival {
		return deadletter.Arrival{
			Exchange:   "dlo.dlx",
			RoutingKey: "k",
			Body:       []byte("body"),
			Properties: deadletter.Properties{
				MessageID: "m", Headers: deadletter.Table{"n": int32(1), "x-death": []any{death("q")}},
			},
		}
	}
	for _, c := range []struct {
		name   string
		change func(a *deadletter.Arrival)
		same   bool
	}{
		{"nothing", func(*deadletter.Arrival) {}, true},
		{"another tag", func(a *deadletter.Arrival) { a.Tag = 7 }, true},
		{"redelivered", func(a *deadletter.Arrival) { a.Redelivered = true }, true},
		{
			"x-delivery-count appears",
			func(a *deadletter.Arrival) { a.Properties.Headers["x-delivery-count"] = int64(1) }, true,
		},
		{
			"x-acquired-count appears",
			func(a *deadletter.Arrival) { a.Properties.Headers["x-acquired-count"] = int64(1) }, true,
		},
		{"no body and an empty one are told apart from a body", func(a *deadletter.Arrival) { a.Body = nil }, false},
		{"int32 1 is not int64 1", func(a *deadletter.Arrival) { a.Properties.Headers["n"] = int64(1) }, false},
		{"another body", func(a *deadletter.Arrival) { a.Body = []byte("bodY") }, false},
		{"another exchange", func(a *deadletter.Arrival) { a.Exchange = "" }, false},
		{
			"a byte moves from the exchange to the routing key",
			func(a *deadletter.Arrival) { a.Exchange, a.RoutingKey = "dlo.dl", "xk" }, false,
		},
		{
			"a byte moves from the routing key to the exchange",
			func(a *deadletter.Arrival) { a.Exchange, a.RoutingKey = "dlo.dlxk", "" }, false,
		},
		{"another message id", func(a *deadletter.Arrival) { a.Properties.MessageID = "m2" }, false},
		{"another death", func(a *deadletter.Arrival) { a.Properties.Headers["x-death"] = []any{death("r")} }, false},
		{"a header less", func(a *deadletter.Arrival) { delete(a.Properties.Headers, "n") }, false},
		{"another timestamp", func(a *deadletter.Arrival) { a.Properties.Timestamp = time.Unix(1, 0) }, false},
		{"x-delivery-count inside another header counts", func(a *deadletter.Arrival) {
			a.Properties.Headers["t"] = deadletter.Table{"x-delivery-count": int64(1)}
		}, false},
	} {
		a, b := base(), base()
		c.change(&b)
		if same := fingerprintOf(t, a) == fingerprintOf(t, b); same != c.same {
			t.Errorf("%s: equal fingerprints: %v", c.name, same)
		}
	}
	empty, none := base(), base()
	empty.Body, none.Body = []byte{}, nil
	empty.Properties.Headers, none.Properties.Headers = deadletter.Table{"x-delivery-count": int64(3)}, nil
	if fingerprintOf(t, empty) != fingerprintOf(t, none) {
		t.Error("a delivery count is all there was in the headers, and it counts")
	}
}

// TestFingerprintsAreEqualForEqualDeliveries checks that two fingerprints are equal only if the
// deliveries are equal. Headers that a redelivery changes must have no effect on the fingerprint.
func TestFingerprintsAreEqualForEqualDeliveries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) deadletter.Arrival {
			return deadletter.Arrival{
				Exchange: shortText().Draw(t, name+" exchange"), RoutingKey: shortText().Draw(t, name+" key"),
				Properties: properties().Draw(t, name),
				Body:       rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, name+" body"),
			}
		}
		a := draw("a")
		b := a
		if rapid.Bool().Draw(t, "other") {
			b = draw("b")
		}
		want := a.Exchange == b.Exchange && a.RoutingKey == b.RoutingKey && bytes.Equal(a.Body, b.Body) &&
			differing(a.Properties, b.Properties) == ""
		headers := deadletter.Table{"x-delivery-count": int64(rapid.IntRange(0, 3).Draw(t, "count"))}
		for k, v := range b.Properties.Headers {
			headers[k] = v
		}
		b.Properties.Headers = headers
		b.Redelivered, b.Tag = true, 9
		if got := fingerprintOf(t, a) == fingerprintOf(t, b); got != want {
			t.Fatalf("equal fingerprints: %v, equal deliveries: %v", got, want)
		}
	})
}

func TestWhatCannotBeEncodedHasNoFingerprint(t *testing.T) {
	t.Parallel()
	a := deadletter.Arrival{Properties: deadletter.Properties{Headers: deadletter.Table{"n": uint64(1)}}}
	if f, err := a.Print(); err == nil {
		t.Errorf("%x", f)
	}
}

func TestDeliveryCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value any
		want  int64
	}{
		{int64(0), 0},
		{int64(21), 21},
		{int32(3), 3},
		{int64(math.MaxInt64), math.MaxInt64},
		{"3", -1},
		{nil, -1},
		{[]any{}, -1},
	} {
		a := deadletter.Arrival{
			Properties: deadletter.Properties{Headers: deadletter.Table{"x-delivery-count": c.value}},
		}
		if got := a.DeliveryCount(); got != c.want {
			t.Errorf("%v: %d", c.value, got)
		}
	}
	if got := (&deadletter.Arrival{}).DeliveryCount(); got != -1 {
		t.Errorf("without headers: %d", got)
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	id, token := deadletter.NewID(42, 7), deadletter.NewToken()
	for _, c := range []struct {
		name    string
		headers deadletter.Table
		ok      bool
	}{
		{"both", deadletter.Table{"dlo-id": string(id), "dlo-token": string(token)}, true},
		{"no token", deadletter.Table{"dlo-id": string(id)}, false},
		{"no id", deadletter.Table{"dlo-token": string(token)}, false},
		{"a token of another length", deadletter.Table{"dlo-id": string(id), "dlo-token": string(token[1:])}, false},
		{
			"a token that is not hexadecimal",
			deadletter.Table{"dlo-id": string(id), "dlo-token": "z" + string(token[1:])},
			false,
		},
		{"an id that is none", deadletter.Table{"dlo-id": "42", "dlo-token": string(token)}, false},
		{"bytes", deadletter.Table{"dlo-id": []byte(id), "dlo-token": []byte(token)}, false},
		{"nothing", nil, false},
	} {
		gotID, gotToken, ok := (&deadletter.Arrival{Properties: deadletter.Properties{Headers: c.headers}}).Identity()
		if ok != c.ok || ok && (gotID != id || gotToken != token) {
			t.Errorf("%s: %s %s %v", c.name, gotID, gotToken, ok)
		}
	}
}
