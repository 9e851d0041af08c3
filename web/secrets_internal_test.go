package web

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// secretName matches the names of fields that nobody may see, or that may have to be masked.
var secretName = regexp.MustCompile(`Body$|Properties|Arrived$|Headers|Token|Secret|Hash|Fingerprint|Password|Returned`)

// canaries fills a value of any type. It puts a canary into each field of a domain type that may
// contain a secret, and counts these fields.
func canaries(v reflect.Value, depth int) (count int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			return canaries(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if raw, ok := v.Addr().Interface().(*json.RawMessage); ok {
			*raw = json.RawMessage("null")
		} else if depth < 8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			return canaries(v.Index(0), depth+1)
		}
	case reflect.Struct:
		for f, field := range v.Fields() {
			switch {
			case !field.CanSet():
			case v.Type().PkgPath() == reflect.TypeFor[deadletter.Letter]().PkgPath() && secretName.MatchString(f.Name):
				count += secret(field)
			default:
				count += canaries(field, depth+1)
			}
		}
	}
	return count
}

// secret puts a canary into a field.
func secret(field reflect.Value) int {
	properties := deadletter.Properties{MessageID: canaryText, Headers: deadletter.Table{"h": canaryText}}
	for _, value := range []any{canaryText, []byte(canaryText), properties, &properties, properties.Headers} {
		if from := reflect.ValueOf(value); from.Type().AssignableTo(field.Type()) ||
			from.Kind() == reflect.String && field.Kind() == reflect.String {
			field.Set(from.Convert(field.Type()))
			return 1
		}
	}
	return 0
}

const canaryText = "kanarie-of-a-secret"

// TestNoSecretIsMarshalled fills the secret fields of all domain types in responses of the API, and
// writes them as JSON. What people may see of them, masked, is in types of package api.
func TestNoSecretIsMarshalled(t *testing.T) {
	t.Parallel()
	schemas, filled := Document().Components.Schemas, 0
	for name := range schemas.Map() {
		v := reflect.New(schemas.TypeFromRef("#/components/schemas/" + name)).Elem()
		filled += canaries(v, 0)
		text, err := api.Marshal(v.Interface())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, form := range []string{canaryText, base64.StdEncoding.EncodeToString([]byte(canaryText))} {
			if strings.Contains(string(text), form) {
				t.Errorf("%s has a secret: %s", name, text)
			}
		}
	}
	if filled < 5 {
		t.Errorf("only %d secret fields", filled)
	}
}
