package deadletter

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPropertiesAreEdited(t *testing.T) {
	t.Parallel()
	p := Properties{
		ContentType:  "application/json",
		Expiration:   "5000",
		UserID:       "guest",
		Type:         "t",
		DeliveryMode: 1,
		ReplyTo:      "amq.rabbitmq.reply-to.x",
		Headers: Table{
			"x-tenant":  "a",
			"n":         int32(1),
			"CC":        []any{"other"},
			"x-death":   []any{},
			HeaderToken: "t",
			"same":      int64(7),
		},
	}
	q, changed, err := p.Edit(PropertyEdit{
		Properties: map[string]string{
			"type": "u", "app_id": "shop", "priority": "3", "content_type": "application/json",
		},
		Headers: map[string]any{
			"x-tenant": "b", "n": RemoveHeader, "new": true, "same": int64(7), "absent": RemoveHeader,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(changed, ", "); got != "app_id, header n, header new, header x-tenant, priority, type" {
		t.Error(got)
	}
	if q.Type != "u" || q.AppID != "shop" || q.Priority != 3 || q.Expiration != "" || q.UserID != "" ||
		q.ReplyTo != "" || q.DeliveryMode != 2 || len(
		q.Headers,
	) != 3 || q.Headers["x-tenant"] != "b" || q.Headers["new"] != true {
		t.Errorf("%+v", q)
	}
	if p.Headers["x-tenant"] != "a" || len(p.Headers) != 6 {
		t.Error("the edit changed what it was made from")
	}
	if got := p.EditableHeaders(); !slices.Equal(got, []string{"n", "same", "x-tenant"}) {
		t.Error(got)
	}
	// If a person sets an expiration, Edit must keep it.
	if q, changed, err = p.Edit(PropertyEdit{
		Properties: map[string]string{"expiration": "5000"},
	}); err != nil || q.Expiration != "5000" || !slices.Equal(changed, []string{"expiration"}) {
		t.Errorf("%+v %v %v", q, changed, err)
	}
	if again, changed, err := q.Edit(PropertyEdit{
		Properties: map[string]string{"type": "v"},
		Revised:    true,
	}); err != nil || again.Expiration != "5000" || !slices.Equal(changed, []string{"type"}) {
		t.Errorf("the next edit lost what a person chose: %+v %v %v", again, changed, err)
	}
	for value, ok := range map[string]bool{
		"0": true, "315360000000": true, "315360000001": false, "99999999999999999999": false,
	} {
		if _, _, err := p.Edit(PropertyEdit{Properties: map[string]string{"expiration": value}}); (err == nil) != ok {
			t.Errorf("expiration %s: %v", value, err)
		}
	}
	if again, changes := Resent(q); again.Expiration != "5000" ||
		slices.ContainsFunc(changes, func(c Change) bool { return c.Field == "expiration" }) {
		t.Errorf("%+v %v", again, changes)
	}
}

// TestPropertiesThatCannotBeEdited checks an edit with fields that are rejected. Each rejected
// field must be reported separately, and the edit must change nothing.
func TestPropertiesThatCannotBeEdited(t *testing.T) {
	t.Parallel()
	p := Properties{Type: "t"}
	q, changed, err := p.Edit(PropertyEdit{
		Properties: map[string]string{
			"user_id": "admin", "expiration": "abc", "priority": "256", "reply_to": "amq.rabbitmq.reply-to",
			"delivery_mode": "1", "exchange": "other", "type": strings.Repeat("x", 256), "app_id": "fine",
		},
		Headers: map[string]any{"CC": []any{"q"}, "BCC": RemoveHeader, "x-death": []any{}, HeaderID: "1", "fine": "x"},
	})
	var refused FieldErrors
	if !errors.As(err, &refused) || !errors.Is(err, ErrInvalid) || changed != nil || q.Type != "t" || q.AppID != "" {
		t.Fatal(q, changed, err)
	}
	var fields []string
	for _, f := range refused {
		fields = append(fields, f.Field)
	}
	if got := strings.Join(
		fields, ", ",
	); got != "delivery_mode, exchange, expiration, header BCC, header CC, header dlo-id, header x-death, priority, reply_to, type, user_id" {
		t.Error(got)
	}
	if !strings.Contains(err.Error(), "expiration: milliseconds, digits only; ") {
		t.Error(err)
	}
	if _, _, err := p.Edit(PropertyEdit{
		Headers: map[string]any{"big": strings.Repeat("x", MaxProperties)},
	}); !errors.As(err, &refused) || refused[0].Field != "headers" {
		t.Error(err)
	}
}

// TestHeaderValuesAsText converts header values to the texts that people edit, and parses the texts
// again. Each value must keep its type.
func TestHeaderValuesAsText(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		"a \"b\"\n",
		int32(-3),
		uint8(7),
		int64(math.MaxInt64),
		true,
		1.5,
		float32(0.1),
		math.Inf(1),
		time.Unix(1763625600, 0).UTC(),
		Decimal{Scale: 2, Value: 314},
	} {
		text, ok := HeaderText(v)
		if !ok {
			t.Errorf("%v (%T) cannot be edited", v, v)
		}
		if got, err := ParseHeader(HeaderKind(v), text); err != nil || got != v {
			t.Errorf("%v (%T) as %q came back as %v (%T), %v", v, v, text, got, got, err)
		}
	}
	for _, v := range []any{Table{}, []any{"a"}, []byte("x"), nil, "\xff"} {
		if text, ok := HeaderText(v); ok {
			t.Errorf("%v (%T) is edited as %q", v, v, text)
		}
	}
	for kind, text := range map[string]string{
		"int32": "3000000000", "bool": "yes", "uint8": "-1", "float64": "one", "timestamp": "yesterday",
		"int64": `1,"x":2`, "table": "{}}", "no kind": "1",
	} {
		if v, err := ParseHeader(kind, text); err == nil {
			t.Errorf("%s %q is %v (%T)", kind, text, v, v)
		}
	}
	for raw, want := range map[string]any{
		`"a"`: "a", `7`: int64(7), `1.5`: 1.5, `true`: true, `null`: RemoveHeader, `{"t":"int32","v":3}`: int32(3),
	} {
		if got, err := HeaderJSON([]byte(raw)); err != nil || got != want {
			t.Errorf("%s: %v (%T), %v", raw, got, got, err)
		}
	}
	for _, raw := range []string{`[1]`, `{"a":1}`, `{"t":"int32","v":"x"}`, ``} {
		if v, err := HeaderJSON([]byte(raw)); err == nil {
			t.Errorf("%s: %v", raw, v)
		}
	}
}
