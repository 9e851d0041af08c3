package server

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/notify"
)

// valid are values of the fields of the kinds of channels, by their names. Nobody listens at the
// addresses, which are private.
var valid = map[string]any{
	"URL": "http://127.0.0.1:1", "Secret": "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32)), "Key": "key",
	"Host": "127.0.0.1", "Port": 1, "User": "dlo", "Password": "secret", "From": "dlo@example.com", "To": []string{"team@example.com"},
}

// TestEveryKindOfChannelHasASender: what the configuration can hold can be told, also at a private
// address.
func TestEveryKindOfChannelHasASender(t *testing.T) {
	t.Parallel()
	kinds, senders := 0, map[reflect.Type]string{}
	for field := range reflect.TypeFor[config.Channel]().Fields() {
		if field.Type.Kind() != reflect.Pointer {
			continue
		}
		kinds++
		kind := reflect.New(field.Type.Elem())
		for option := range field.Type.Elem().Fields() {
			value, ok := valid[option.Name]
			if !ok {
				t.Fatalf("no valid value of %s.%s is known here", field.Name, option.Name)
			}
			kind.Elem().FieldByIndex(option.Index).Set(reflect.ValueOf(value))
		}
		c := config.Channel{Name: "it", AllowPrivate: true}
		reflect.ValueOf(&c).Elem().FieldByIndex(field.Index).Set(kind)
		channels, err := channelsOf([]config.Channel{c})
		if err != nil {
			t.Errorf("%s: %v", field.Name, err)
			continue
		}
		if err := channels["it"].Sender.Send(t.Context(), notify.Message{}); err == nil || errors.Is(err, notify.ErrPermanent) {
			t.Errorf("%s does not know of allow_private: %v", field.Name, err)
		}
		senders[reflect.TypeOf(channels["it"].Sender)] = field.Name
	}
	if kinds == 0 || len(senders) != kinds {
		t.Errorf("%d kinds of channels have the senders %v, not one each", kinds, senders)
	}
	if _, err := channelsOf([]config.Channel{{Name: "odd"}}); err == nil || !strings.Contains(err.Error(), "channel odd: dlo has no sender for a channel of this kind") {
		t.Errorf("a channel of no kind: %v", err)
	}
}
