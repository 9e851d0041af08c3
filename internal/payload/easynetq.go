package payload

import "strings"

// easyNetQError is in the type property of what EasyNetQ puts into its error queues: "EasyNetQ.SystemMessages.Error, EasyNetQ".
const easyNetQError = "EasyNetQ.SystemMessages.Error"

// easyNetQ reads the envelope of EasyNetQ's error queues, SystemMessages/Error.cs of EasyNetQ: the body as it was published is Message, as text, or as base64 with
// Base64ErrorMessageSerializer; BasicProperties are the properties that it had. Queue came later than the other members. Ordinary messages of EasyNetQ have no envelope.
func (r *reading) easyNetQ(o object) (content, string) {
	if why := o.need('"', "RoutingKey", "Exchange", "Exception", "Message", "DateTime"); why != "" {
		return content{}, why
	}
	if why := o.need('{', "BasicProperties"); why != "" {
		return content{}, why
	}
	properties, why := readObject(o.value("BasicProperties"))
	if why != "" {
		return content{}, "BasicProperties: " + why
	}
	said := withoutAssembly(r.say("BasicProperties.Type", properties.text("Type")))
	in := content{
		member: o.members["Message"],
		layer:  Layer{Quoted: true},
		hints: Hints{
			ContentType: r.attribute("BasicProperties.ContentType", properties.text("ContentType")),
			Type:        r.attribute("BasicProperties.Type", properties.text("Type")),
		},
		message: said,
		note:    r.exception(o.value("Exception")),
	}
	var ok bool
	if in.data, ok = r.textOf(o.value("Message")); !ok {
		return content{}, ""
	}
	if said != "" {
		in.layer.Detail = "type " + said
	}
	return in, ""
}

// exception is a note of the first line of an exception: the only place of the error. The mask sees all of the text, or it would miss a value that the cut divides.
func (r *reading) exception(token []byte) string {
	if r.budget.takeMemory(6*int64(len(token))) != nil {
		return ""
	}
	text, _ := r.spotOf("Exception").apply(unquoteJSON(token))
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line, _ = cut(visible(strings.TrimSpace(line), ""), 300); line == "" {
		return ""
	}
	return "EasyNetQ wrote: " + line
}

// withoutAssembly takes the assembly off a name of a .NET type: "Acme.Orders.Placed, Acme.Contracts", as EasyNetQ has it in the type property, or
// "Acme.Orders.Placed:Acme.Contracts", as its LegacyTypeNameSerializer has it. Types with parameters, which have brackets, stay; so do other words with colons.
func withoutAssembly(name string) string {
	if strings.Contains(name, "[") {
		return name
	}
	if before, _, ok := strings.Cut(name, ","); ok {
		return strings.TrimSpace(before)
	}
	if before, after, ok := strings.Cut(name, ":"); ok && strings.Contains(before, ".") && !strings.Contains(after, ":") {
		return before
	}
	return name
}
