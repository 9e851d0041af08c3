package payload

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"golang.org/x/text/encoding/charmap"
)

// phpEnvelope is the beginning of a message of Symfony Messenger that its PhpSerializer wrote.
const phpEnvelope = `O:36:"Symfony\Component\Messenger\Envelope":`

// isPHPEnvelope reports whether a body is an envelope of the PhpSerializer. By default, the
// serializer escapes quotes, backslashes and zero bytes.
func isPHPEnvelope(body []byte) bool {
	return bytes.HasPrefix(body, []byte(phpEnvelope)) || bytes.HasPrefix(body, []byte(phpEscaper.Replace(phpEnvelope)))
}

// symfony reads an envelope of Symfony's PhpSerializer: the class of the message, and the stamps
// about its failure and its retries. The body stays what it is. Source:
// Transport/Serialization/PhpSerializer.php of symfony/messenger 7.
func (r *reading) symfony() {
	d := r.doc
	if !isPHPEnvelope(d.Body) || d.Failure.By != "" || d.Text == Masked || d.Kind == Binary && d.Masked {
		return
	}
	if r.budget.TakeMemory(3*int64(len(d.Body))) != nil {
		return
	}
	body := d.Body
	if n := len(d.Layers); n > 0 && d.Layers[n-1].encoding != nil { // PHP counts the bytes before the conversion
		body = d.Layers[n-1].outer
	}
	if body[len(`O:36:`)] == '\\' {
		body = []byte(phpUnescaper.Replace(string(body)))
	}
	hidden := false
	text := func(before string, most int) string {
		found := phpText(body, before)
		shown := r.shownPart(found)
		hidden = hidden || shown != found
		return deadletter.Cut(shown, most)
	}
	f := deadletter.Failure{
		By:          "Symfony Messenger",
		Type:        text("ErrorDetailsStamp\x00exceptionClass\";s:", 300),
		Message:     text("ErrorDetailsStamp\x00exceptionMessage\";s:", maxAttribute),
		Stack:       text("FlattenException\x00traceAsString\";s:", maxException),
		MessageType: text("Messenger\\Envelope\x00message\";O:", 300),
		Service:     text("SentToFailureTransportStamp\x00originalReceiverName\";s:", 300),
	}
	if hidden { // a stack may repeat what is masked elsewhere
		f.Stack = ""
	}
	count, _, _ := bytes.Cut(afterLast(body, "RedeliveryStamp\x00retryCount\";i:"), []byte(";"))
	f.Attempts, _ = strconv.Atoi(string(count[:min(len(count), 10)]))
	f.Attempts = min(max(f.Attempts, 0), 1_000_000)
	date := afterLast(body, "RedeliveryStamp\x00redeliveredAt\"")
	date = date[:min(len(date), 100)]
	at, err := time.Parse("2006-01-02 15:04:05.999999", phpText(date, `{s:4:"date";s:`))
	if err == nil && at.Year() >= 1970 {
		f.FailedAt = at
	}
	d.Failure = f
}

// shownPart returns a part of a body that is text, or "" if the masks hide any of it. A pattern may
// match the part together with what is before or after it, so the part must still be in the masked
// body.
func (r *reading) shownPart(text string) string {
	at := r.rootSpot()
	if _, masked := at.apply(text); masked {
		return ""
	}
	if !r.doc.Masked {
		return text
	}
	whole, _ := at.apply(string(r.doc.Body))
	if strings.Contains(whole, text) || strings.Contains(whole, phpEscaper.Replace(text)) {
		return text
	}
	return ""
}

var (
	phpUnescaper = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\'`, `'`, `\0`, "\x00")
	phpEscaper   = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `'`, `\'`, "\x00", `\0`)
)

// phpText returns the text, or the name of a class, whose length is after the last occurrence of
// "before" in what serialize of PHP wrote. The newest stamp is the last one.
func phpText(body []byte, before string) string {
	after := afterLast(body, before)
	size, rest, ok := bytes.Cut(after[:min(len(after), maxException)], []byte(`:"`))
	n, err := strconv.Atoi(string(size))
	if !ok || err != nil || n < 0 || n >= len(rest) || rest[n] != '"' {
		return ""
	}
	if text := rest[:n]; utf8.Valid(text) {
		return string(text)
	}
	return string((&charset{enc: charmap.Windows1252}).decode(rest[:n]))
}

// afterLast returns what follows the last occurrence of a text, or nil.
func afterLast(body []byte, text string) []byte {
	if i := bytes.LastIndex(body, []byte(text)); i >= 0 {
		return body[i+len(text):]
	}
	return nil
}
