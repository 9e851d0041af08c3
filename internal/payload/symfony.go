package payload

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
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
	body, decode := d.Body, func(b []byte) []byte { return b }
	if n := len(d.Layers); n > 0 && d.Layers[n-1].encoding != nil { // PHP counts the bytes before the conversion
		body, decode = d.Layers[n-1].outer, (&charset{enc: d.Layers[n-1].encoding}).decode
	}
	if body[len(`O:36:`)] == '\\' {
		body = []byte(phpUnescaper.Replace(string(body)))
	}
	p := &phpReader{rest: body[len(phpEnvelope):], decode: decode}
	class, stamps := p.envelope()
	stamp := func(name string) phpArray {
		list, _ := stamps[`Symfony\Component\Messenger\Stamp\`+name].(phpArray)
		newest, _ := list[strconv.Itoa(len(list)-1)].(phpArray)
		return newest
	}
	failed, again := stamp("ErrorDetailsStamp"), stamp("RedeliveryStamp")
	trace, _ := failed["flattenException"].(phpArray)
	at, _ := again["redeliveredAt"].(phpArray)
	f := deadletter.Failure{
		By:          "Symfony Messenger",
		Type:        deadletter.Cut(r.shownPart(failed.text("exceptionClass")), 300),
		Message:     deadletter.Cut(r.shownPart(failed.text("exceptionMessage")), maxAttribute),
		Stack:       deadletter.Cut(r.shownPart(trace.text("traceAsString")), maxException),
		MessageType: deadletter.Cut(r.shownPart(class), 300),
		Service:     deadletter.Cut(r.shownPart(stamp("SentToFailureTransportStamp").text("originalReceiverName")), 300),
	}
	f.Attempts, _ = strconv.Atoi(again.text("retryCount"))
	f.Attempts = min(max(f.Attempts, 0), 1_000_000)
	if t, err := time.Parse("2006-01-02 15:04:05.999999", at.text("date")); err == nil && t.Year() >= 1970 {
		f.FailedAt = t
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

// phpArray is an array or an object of PHP. Names of private fields are without their class.
type phpArray map[string]any

func (a phpArray) text(name string) string {
	text, _ := a[name].(string)
	return text
}

// phpReader reads the format of PHP's serialize. It gives up at whatever it does not know.
type phpReader struct {
	rest   []byte
	decode func([]byte) []byte // converts a text to UTF-8
	values int
	failed bool
}

const (
	maxPHPValues = 10_000
	maxPHPDepth  = 32
)

// envelope reads the fields of the envelope up to the class of the message.
func (p *phpReader) envelope() (class string, stamps phpArray) {
	p.until('{')
	for !p.failed {
		switch name, _ := p.value(1).(string); fieldOfPHP(name) {
		case "stamps":
			stamps, _ = p.value(1).(phpArray)
		case "message":
			if p.until(':') == "O" {
				p.until(':')
				class = strings.Trim(p.until(':'), `"`)
			}
			return class, stamps
		default:
			p.value(1)
		}
	}
	return "", stamps
}

// fieldOfPHP removes the class from the name of a private field, and the mark of a protected one.
func fieldOfPHP(name string) string { return name[strings.LastIndexByte(name, 0)+1:] }

// until returns what is before the next delimiter, and skips both.
func (p *phpReader) until(end byte) string {
	i := bytes.IndexByte(p.rest, end)
	if i < 0 || i > 1000 {
		p.failed = true
		return ""
	}
	text := string(p.rest[:i])
	p.rest = p.rest[i+1:]
	return text
}

// value reads one value: texts and numbers as text, arrays and objects as phpArray.
func (p *phpReader) value(depth int) any {
	if p.values++; p.failed || len(p.rest) < 2 || p.values > maxPHPValues || depth > maxPHPDepth {
		p.failed = true
		return nil
	}
	kind := p.rest[0]
	p.rest = p.rest[2:]
	switch kind {
	case 'N':
		return nil
	case 'i', 'd', 'b', 'r', 'R':
		return p.until(';')
	case 's', 'E':
		n, err := strconv.Atoi(p.until(':'))
		if err != nil || n < 0 || len(p.rest) < n+3 || p.rest[0] != '"' {
			p.failed = true
			return nil
		}
		text := p.rest[1 : n+1]
		p.rest = p.rest[n+3:] // with the quotes and a semicolon
		return string(p.decode(text))
	case 'O':
		p.until(':')
		p.until(':')
	case 'a':
	default:
		p.failed = true
		return nil
	}
	p.until('{')
	array := phpArray{}
	for !p.failed && len(p.rest) > 0 && p.rest[0] != '}' {
		name, _ := p.value(depth + 1).(string)
		array[fieldOfPHP(name)] = p.value(depth + 1)
	}
	p.rest = p.rest[min(1, len(p.rest)):]
	return array
}
