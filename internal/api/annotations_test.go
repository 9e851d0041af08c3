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

// TestAnAnnotationIsWhatIsRead checks that ReadAnnotation knows every field of Annotation. The test
// gives one field after another a value that is not a string, and ReadAnnotation must reject it.
// ReadAnnotation ignores members that it does not know, so it would not reject an unknown field.
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
