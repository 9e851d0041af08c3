package payload

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// nestJS reads the packets of the microservices of NestJS: an object with the members pattern and
// data, and with the member id if the sender waits for an answer. The pattern is a text or a small
// object, and names the handler. Source: microservices/interfaces/packet.interface.ts of NestJS 11.
func (r *reading) nestJS() {
	d := r.doc
	if len(d.Fields) < 2 || len(d.Fields) > 3 {
		return
	}
	var pattern *Node
	data := false
	for i := range d.Fields {
		switch n := &d.Fields[i]; n.Name {
		case "pattern":
			pattern = n
		case "data":
			data = true
		case "id", "options":
		default:
			return
		}
	}
	if pattern == nil || !data {
		return
	}
	switch {
	case pattern.Kind == String:
		d.Failure.MessageType = deadletter.Cut(d.word("pattern"), 300)
	case pattern.Kind == Message && !d.Masked:
		o, _ := readObject(d.Body)
		var text bytes.Buffer
		if v := o.value("pattern"); len(v) <= 300 && json.Compact(&text, v) == nil {
			d.Failure.MessageType = text.String()
		}
	}
	if d.Failure.MessageType != "" {
		d.Failure.By = cmp.Or(d.Failure.By, deadletter.NestJS)
	}
}
