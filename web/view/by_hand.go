package view

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Form is a format in which a person can copy a letter, for example as a curl command.
type Form string

// These are the formats in which a letter can be copied.
const (
	FormJSON  Form = "json"
	FormCurl  Form = "curl"
	FormAdmin Form = "rabbitmqadmin"
)

// Forms lists the formats in menu order.
var Forms = []Form{FormJSON, FormCurl, FormAdmin}

// ParseForm parses the text format in a URL. It returns FormJSON for an unknown format.
func ParseForm(s string) Form {
	if slices.Contains(Forms, Form(s)) {
		return Form(s)
	}
	return FormJSON
}

func (f Form) name() string {
	if f == FormJSON {
		return "JSON"
	}
	return string(f)
}

// ByHandPage shows a letter as text for people who want to handle it by hand.
type ByHandPage struct {
	Shell
	Letter    deadletter.ID
	Query     string // the query of the list from which the letter was opened
	Form      Form
	Copy      Copy
	Masked    bool // the letter has masked values
	Revealed  bool // masked values are shown unmasked
	MayReveal bool
}

// Copy is a letter as text, or the reason why it cannot be written as text.
type Copy struct {
	Text string
	Left []string // the properties and headers that the text omits, each with the reason
	Why  string
}

// These are the maximum sizes in bytes of a letter that is shown for copying, as a command or as
// text. A shell accepts 128 KiB in one word, and pages have to stay small.
const (
	maxCommand = 64 << 10
	maxCopied  = 128 << 10
)

// JSONCopy returns a letter as the API returns it.
func JSONCopy(letter any) (Copy, error) {
	text, err := plainJSON(letter, "  ")
	switch {
	case err != nil:
		return Copy{}, err
	case len(text) > maxCopied:
		return Copy{
			Why: "As JSON it takes " + Size(len(text)) + ", and at most " + Size(maxCopied) +
				" can be copied here. Get it from the API, or with dlo letters show -o json.",
		}, nil
	}
	return Copy{Text: text}, nil
}

// Curl returns a curl command that publishes a letter to its origin queue through the management
// API. The command contains the properties and the body that dlo would send, but not the headers
// that dlo adds to an attempt.
func Curl(o deadletter.Origin, p deadletter.Properties, body []byte) Copy {
	return copyText(o, p, body, func(properties, payload string) string {
		data := `{"properties":` + properties + `,"routing_key":` + quote(o.Queue) + `,"payload":"` + payload +
			`","payload_encoding":"base64"}`
		address := "http://HOST:15672/api/exchanges/" + url.PathEscape(o.VHost) + "/amq.default/publish"
		return "curl --user USER --header 'Content-Type: application/json' \\\n" +
			"  --data-raw " + deadletter.ShellWord(data) + " \\\n  " + deadletter.ShellWord(address)
	})
}

// Admin returns a command for the Python version of rabbitmqadmin. Like the command that Curl
// returns, it publishes the letter to its origin queue.
func Admin(o deadletter.Origin, p deadletter.Properties, body []byte) Copy {
	return copyText(o, p, body, func(properties, payload string) string {
		return "rabbitmqadmin --host HOST --username USER --password PASSWORD --vhost=" + deadletter.ShellWord(o.VHost) +
			" publish exchange=amq.default \\\n" +
			"  " + deadletter.ShellWord("routing_key="+o.Queue) + " \\\n" +
			"  " + deadletter.ShellWord("properties="+properties) + " \\\n" +
			"  payload_encoding=base64 payload=" + payload
	})
}

func copyText(
	o deadletter.Origin, p deadletter.Properties, body []byte, write func(properties, payload string) string,
) Copy {
	const instead = " Download the body (tab Raw) or get it from the API, and publish it from a file."
	switch {
	case o.Queue == "":
		return Copy{Why: "It is unknown which queue it died in, so no command can send it there."}
	case !isCopyable(o.Queue) || !isCopyable(o.VHost):
		return Copy{
			Why: "The name of its queue has characters that cannot be seen: a command would not be what it looks like.",
		}
	case base64.StdEncoding.EncodedLen(len(body)) > maxCommand:
		return Copy{Why: "The body is too large for a command: it has " + Size(len(body)) + "." + instead}
	}
	properties, left := managementProperties(p)
	asJSON, err := plainJSON(properties, "")
	if err != nil { // this cannot happen with the types in use
		return Copy{Why: "Its headers cannot be written as JSON."}
	}
	text := write(asJSON, base64.StdEncoding.EncodeToString(body))
	if len(text) > maxCommand {
		return Copy{Why: "The letter is too large for a command: it would take " + Size(len(text)) + "." + instead}
	}
	return Copy{Text: text, Left: left}
}

// managementProperties returns message properties as the management API accepts them. It also
// returns the properties that the API cannot accept, each with the reason.
func managementProperties(p deadletter.Properties) (out map[string]any, left []string) {
	out = map[string]any{}
	leave := func(what, why string) { left = append(left, line(what, 120)+": "+why) }
	for _, t := range p.ShortStrings() {
		switch {
		case *t.Value == "":
		case !utf8.ValidString(*t.Value):
			leave(t.Name, notUTF8)
		default:
			out[t.Name] = *t.Value
		}
	}
	if p.DeliveryMode != 0 {
		out["delivery_mode"] = p.DeliveryMode
	}
	if p.Priority != 0 {
		out["priority"] = p.Priority
	}
	if at := p.Timestamp.Unix(); !p.Timestamp.IsZero() && at >= 0 {
		out["timestamp"] = at
	}
	headers := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		value, why := managedValue(p.Headers[name], 0)
		if !utf8.ValidString(name) {
			why = notUTF8
		}
		if why != "" {
			leave("header "+name, why)
			continue
		}
		headers[name] = value
	}
	if len(headers) > 0 {
		out["headers"] = headers
	}
	return out, left
}

const notUTF8 = "it is not UTF-8"

// managedValue returns the value of a header as the management API accepts it. If the API cannot
// accept it, it returns the reason. The API supports integers (as int64), other numbers (as
// double), strings, booleans, lists and tables.
func managedValue(v any, depth int) (value any, why string) {
	const unknown = "the management API has no such type: "
	if depth > 32 {
		return nil, "it is nested too deep"
	}
	switch v := v.(type) {
	case bool, int8, uint8, int16, uint16, int32, uint32, int64:
		return v, ""
	case float32:
		return real64(float64(v), 32)
	case float64:
		return real64(v, 64)
	case string:
		if !utf8.ValidString(v) {
			return nil, notUTF8
		}
		return v, ""
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			if list[i], why = managedValue(e, depth+1); why != "" {
				return nil, why
			}
		}
		return list, ""
	case deadletter.Table:
		table := make(map[string]any, len(v))
		for name, e := range v {
			if !utf8.ValidString(name) {
				return nil, notUTF8
			}
			if table[name], why = managedValue(e, depth+1); why != "" {
				return nil, why
			}
		}
		return table, ""
	case nil:
		return nil, unknown + "void"
	case time.Time:
		return nil, unknown + "timestamp"
	}
	return nil, unknown + deadletter.HeaderKind(v)
}

// real64 returns a number as JSON with a decimal point, so that it is always read as a
// floating-point number.
func real64(f float64, bits int) (any, string) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, "it is not a number"
	}
	text := strconv.FormatFloat(f, 'g', -1, bits)
	if mantissa, exponent, large := strings.Cut(text, "e"); !strings.Contains(mantissa, ".") {
		if text = mantissa + ".0"; large {
			text += "e" + exponent
		}
	}
	return json.Number(text), ""
}

func quote(text string) string {
	b, _ := plainJSON(text, "") // a string can always be encoded
	return b
}

// plainJSON encodes v as JSON and escapes invisible characters.
func plainJSON(v any, indent string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return deadletter.EscapeJSON(strings.TrimSuffix(b.String(), "\n")), nil
}

// CopyURL returns the URL of the page that shows a letter as text.
func CopyURL(id deadletter.ID, q string, f Form) string {
	return address("/letters/"+url.PathEscape(string(id))+"/copy", "q", shortQuery(q), "as", string(f))
}

const maxLeft = 50 // the maximum number of omitted fields that are named

// purpose returns a sentence that explains what the text is for.
func (p ByHandPage) purpose() string {
	switch p.Form {
	case FormCurl:
		return "The command sends the letter to the queue that it died in. Replace HOST and USER; curl asks for the password."
	case FormAdmin:
		return "The command sends the letter to the queue that it died in. Replace HOST, USER and PASSWORD. It is for the Python script rabbitmqadmin; rabbitmqadmin version 2 can send only text."
	}
	return "The letter as the API gives it."
}

func (p ByHandPage) maskedWords() string {
	if p.Form == FormJSON {
		return "Some of it is masked, and a masked body is null."
	}
	return "The letter has masked values, or it is unknown whether it does, so there is no command."
}
