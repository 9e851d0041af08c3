package api_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestAnAnnotationIsWhatIsRead checks that ReadAnnotation knows every field of the struct
// Annotation. ReadAnnotation ignores fields that it does not know, and rejects a known field whose
// value is not a string. Therefore the test gives one field after another such a value, and
// ReadAnnotation must reject it.
func TestAnAnnotationIsWhatIsRead(t *testing.T) {
	t.Parallel()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[api.Annotation]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		_, err := deadletter.ReadAnnotation(fmt.Appendf(nil, `{"message_id":"m","message":"x",%q:7}`, name))
		var refused deadletter.FieldErrors
		if !errors.As(err, &refused) || refused[0].Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}
