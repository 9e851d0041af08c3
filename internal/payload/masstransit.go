package payload

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// massTransit reads MassTransit's envelope. It is an object with two required members. The member
// message is the message as an object. The member messageType is a list of URNs for the types of
// the message, the most specific first: "urn:message:Acme.Orders:OrderPlaced". The other members
// (messageId, sentTime, headers, host ...) may be missing. Sources: masstransit.io,
// "Interoperability", and MassTransit's MessageUrn.cs.
func (r *reading) massTransit(o object) (content, string) {
	if why := o.firstInvalid('{', "message"); why != "" {
		return content{}, why
	}
	if why := o.firstInvalid('[', "messageType"); why != "" {
		return content{}, why
	}
	types, why := messageTypes(o.value("messageType"))
	if why != "" {
		return content{}, why
	}
	said := r.safeText("messageType", types[0])
	return content{
		member:  o.members["message"],
		data:    o.value("message"),
		layer:   Layer{Detail: "type " + said},
		hints:   Hints{ContentType: "application/json"},
		message: said,
	}, ""
}

const urnOfMessage = "urn:message:"

// messageTypes returns the names in a list of URNs. For example,
// "urn:message:Acme.Orders:OrderPlaced" becomes "Acme.Orders.OrderPlaced".
func messageTypes(list []byte) (names []string, why string) {
	r := &jsonReader{src: list, at: 1}
	for c := r.peek(); c != ']' && c != 0; c = r.peek() {
		from := r.at
		r.skip()
		urn := shortText(list[from:r.at])
		name, ok := strings.CutPrefix(urn, urnOfMessage)
		if !ok || name == "" {
			return nil, "messageType holds something else than " + urnOfMessage + "..."
		}
		if len(names) == maxMembers {
			return nil, "messageType has more than " + deadletter.Count(maxMembers) + " elements"
		}
		names = append(names, strings.ReplaceAll(name, ":", "."))
		if r.peek() == ',' {
			r.at++
		}
	}
	if len(names) == 0 {
		return nil, "messageType is empty"
	}
	return names, ""
}
