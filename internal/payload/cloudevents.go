package payload

import (
	"bytes"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// isEvent reports whether a body is a CloudEvent although the content type does not say so: a JSON
// object with the required attributes and with data. Dapr declares text/plain.
func (r *reading) isEvent() bool {
	body := r.doc.Body
	if !bytes.Contains(body, []byte(`"specversion"`)) {
		return false
	}
	if isJSON, _ := r.isJSON(body); !isJSON {
		return false
	}
	o, why := readObject(body)
	return why == "" && o.firstInvalid('"', "id", "source", "specversion", "type") == "" &&
		o.text("specversion") == "1.0" && (o.value("data") != nil || o.value("data_base64") != nil)
}

// eventType adds the type of a CloudEvent that stays in its envelope, for example because it has no
// data.
func (r *reading) eventType() {
	d := r.doc
	if d.word("specversion") != "" && d.word("id") != "" && d.word("source") != "" {
		d.Failure.MessageType = deadletter.Cut(d.word("type"), 300)
	}
}

// cloudEvent reads a CloudEvents envelope: version 1.0 of the specification, "structured mode",
// JSON format (cloudevents/spec, formats/json-format.md).
//
//   - id, source, specversion and type must be present and not empty.
//   - The data is in data_base64 or data. If its content type is JSON, which is the default, the
//     data is the JSON itself. With another content type, a string in data is the text (3.1).
//   - datacontenttype is the content type of the data. The member type may be the name of a
//     protobuf type, and so may the end of dataschema, which is a URI.
func (r *reading) cloudEvent(o object) (content, string) {
	if why := o.firstInvalid('"', "id", "source", "specversion", "type"); why != "" {
		return content{}, why
	}
	for _, n := range []string{"id", "source", "type"} {
		if len(o.value(n)) == len(`""`) {
			return content{}, n + " is empty"
		}
	}
	if o.text("specversion") != "1.0" {
		return content{}, "specversion is not 1.0"
	}
	for _, n := range []string{"datacontenttype", "dataschema"} {
		if v := o.value(n); v != nil && string(v) != "null" && v[0] != '"' {
			return content{}, n + " is not a string"
		}
	}
	typ, mediaOf := r.attribute("type", o.text("type")), r.attribute("datacontenttype", o.text("datacontenttype"))
	said := r.safeText("type", o.text("type"))
	detail := "type " + said
	if mediaOf != "" {
		detail += ", " + r.safeText("datacontenttype", mediaOf)
	}
	in := content{
		hints: Hints{ContentType: mediaOf, Type: r.hints.Type},
		inside: []namedType{
			{typ, "the type of the CloudEvent"},
			{r.attribute("dataschema", o.text("dataschema")), "the data schema of the CloudEvent"},
		},
	}
	data, encoded := o.value("data"), o.value("data_base64")
	switch {
	case data != nil && encoded != nil:
		return content{}, "it has both data and data_base64"
	case encoded != nil:
		if encoded[0] != '"' {
			return content{}, "data_base64 is not a string"
		}
		text, ok := r.textOf(encoded)
		if !ok {
			return content{}, ""
		}
		t := base64Text{text: text}
		if t.shape(); t.why != "" {
			return content{}, "data_base64: " + t.why
		}
		if in.data = r.base64(text); in.data == nil {
			return content{}, ""
		}
		in.member, in.layer.Quoted, in.layer.Base64 = o.members["data_base64"], true, &t.Base64
		detail += ", data_base64 in the " + t.detail
	case data == nil || string(data) == "null":
		return content{}, "it has no data"
	default:
		in.member, in.data = o.members["data"], data
		if mediaOf == "" {
			in.hints.ContentType = "application/json"
		}
		if media, _ := mediaType(in.hints.ContentType); !isJSONType(media) && data[0] == '"' {
			var ok bool
			if in.data, ok = r.textOf(data); !ok {
				return content{}, ""
			}
			in.layer.Quoted = true
		}
	}
	in.layer.Detail, in.message = detail, said
	return in, ""
}
