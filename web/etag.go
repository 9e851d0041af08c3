package web

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Matching is the header If-Match of a request: the entity tags of the versions that the client
// knows of what it changes.
type Matching struct {
	IfMatch string `header:"If-Match"`
}

// groupTag returns the entity tag of a group. The tag is made from the time of the last decision
// about the group, by a person or by dlo.
func groupTag(changed time.Time) string {
	ms := int64(0) // there is no decision yet
	if !changed.IsZero() {
		ms = changed.UnixMilli()
	}
	return strconv.Quote(strconv.FormatInt(ms, 36))
}

// time returns the time in the If-Match header of a request about a group. If there is no such
// header, or if it is a star, it returns the zero time.
func (m Matching) time() (time.Time, error) {
	tags, err := m.tags()
	if err != nil || len(tags) == 0 {
		return time.Time{}, err
	}
	ms, bad := strconv.ParseInt(strings.Trim(tags[0], `"`), 36, 64)
	if len(tags) > 1 || bad != nil {
		return time.Time{}, invalid("If-Match takes one tag, the ETag of the group")
	}
	return time.UnixMilli(ms), nil
}

// tags returns the tags in the If-Match header of a request. If there is no such header, or if
// it is a star, it returns no tags.
func (m Matching) tags() (tags []string, err error) {
	for part := range strings.SplitSeq(m.IfMatch, ",") {
		switch part = strings.TrimSpace(part); {
		case part == "":
		case part == "*":
			return nil, nil
		case len(part) < 3 || part[0] != '"' || part[len(part)-1] != '"':
			return nil, invalid("If-Match takes a strong tag in quotes, as ETag gives it")
		default:
			tags = append(tags, part)
		}
	}
	return tags, nil
}

// tagOf returns the entity tag of a value. Equal values have the same tag.
func tagOf(v any) string {
	text, _ := api.Marshal(v) // encoding cannot fail for a value of the API
	sum := sha256.Sum256(text)
	return fmt.Sprintf("\"%x\"", sum[:12])
}

// stillMatches checks that an object has not changed since the client read it. The request may
// contain the tags of the versions that the client knows. If it does, and the present tag of the
// object is not one of them, stillMatches returns an error.
func (m Matching) stillMatches(present string) error {
	tags, err := m.tags()
	if err != nil || len(tags) == 0 || slices.Contains(tags, present) {
		return err
	}
	return fmt.Errorf("%w: somebody has changed it since; read it again", deadletter.ErrChanged)
}
