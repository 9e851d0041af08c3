package descriptor

import (
	"errors"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// PlainError makes an error of the protobuf module readable. In the texts of such errors, the
// module deliberately varies between a space and a no-break space.
func PlainError(err error) error {
	s := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	return errors.New(deadletter.Cut(deadletter.Visible(strings.TrimPrefix(s, "proto: ")), 300))
}
