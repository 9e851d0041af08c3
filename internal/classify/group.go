package classify

import (
	"crypto/sha256"
	"encoding/binary"
	"regexp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// groupVersion is stored with each group: a better way to group gets the next number.
const groupVersion = 1

// grouped fills in the group of a verdict: letters that fail for one cause, which is origin queue with its broker and vhost, reason, type and the error with what varies taken out.
func grouped(v deadletter.Classified) deadletter.Classified {
	h := sha256.New()
	var length [8]byte
	for _, part := range []string{v.Origin.Broker, v.Origin.VHost, v.Origin.Queue, v.Reason, v.Type, fold(v.Error)} {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	v.GroupKey = [32]byte(h.Sum(nil))
	v.GroupTitle = title(v)
	return v
}

// title names a group in a list.
func title(v deadletter.Classified) string {
	switch {
	case v.Error != "":
		return v.Error
	case v.Type != "" && v.Reason != "":
		return v.Type + " " + v.Reason
	case v.Reason != "":
		return "letters " + v.Reason
	case v.Type != "":
		return v.Type
	}
	return "letters without a known death"
}

// What varies from letter to letter in the text of one error.
var varying = regexp.MustCompile(`"[^"]*"|'[^']*'|` + "`[^`]*`" + `|\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b0x[0-9a-fA-F]+\b|\b[0-9a-fA-F]{16,}\b|[0-9]+`)

// fold takes quoted values, ids and numbers out of an error text.
func fold(text string) string { return varying.ReplaceAllString(text, "#") }
