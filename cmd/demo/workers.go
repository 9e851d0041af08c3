package main

import (
	"encoding/base64"
	"fmt"
	"mime"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

// worker handles one message of a queue. The parameter "fixed" is true if the fix is deployed. The
// result "what" describes the message. The result "refusal" says why the worker rejects the
// message. It is "" if the worker accepts the message.
type worker func(m amqp.Delivery, fixed bool) (what, refusal string)

// workers returns the worker of each queue.
func workers(types schemas) map[string]worker {
	return map[string]worker{
		emailQueue:   func(m amqp.Delivery, fixed bool) (string, string) { return sendMail(types, m, fixed) },
		smsQueue:     func(m amqp.Delivery, fixed bool) (string, string) { return sendSMS(types, m, fixed) },
		billingQueue: func(m amqp.Delivery, _ bool) (string, string) { return openAccount(types, m) },
	}
}

// decodeMessage decodes the body of a message. It takes the type from a parameter of the content
// type or from the type property. If there is neither, the message comes from the old publisher, so
// decodeMessage decodes its body as base64.
func decodeMessage(types schemas, m amqp.Delivery) (string, fields, error) {
	_, params, _ := mime.ParseMediaType(m.ContentType)
	switch {
	case params["messagetype"] != "":
		f, err := types.decode(params["messagetype"], m.Body)
		return params["messagetype"], f, err
	case m.Type != "":
		f, err := types.decode(m.Type, m.Body)
		return m.Type, f, err
	}
	body, err := base64.StdEncoding.DecodeString(string(m.Body))
	if err != nil {
		return "", fields{}, fmt.Errorf("%s is not protobuf", m.ContentType)
	}
	f, err := types.decode(smsRequested, body)
	return smsRequested, f, err
}

// sendMail is the worker of the email service.
func sendMail(types schemas, m amqp.Delivery, fixed bool) (what, refusal string) {
	typ, f, err := decodeMessage(types, m)
	if err != nil {
		return "a message", err.Error()
	}
	var to, template string
	switch typ {
	case customerRegistered:
		to, template = f.message("customer").text("email"), f.message("welcome").text("email_template")
	case emailRequested:
		to, template = f.text("to"), f.text("template")
	default:
		return "a message", typ + " is not an email"
	}
	what = "mail " + template + " for " + to
	switch tenant := f.number("tenant_id"); {
	case fixed:
		return what, ""
	case tenant == unknownTenant:
		return what, fmt.Sprintf("tenant %d is not known", tenant)
	case template == missingTemplate:
		return what, "there is no template " + template
	}
	return what, ""
}

// sendSMS is the worker of the sms service.
func sendSMS(types schemas, m amqp.Delivery, fixed bool) (what, refusal string) {
	typ, f, err := decodeMessage(types, m)
	if err != nil {
		return "a message", err.Error()
	}
	var to, text string
	switch typ {
	case customerRegistered:
		to, text = f.message("customer").text("phone"), f.message("welcome").text("sms_text")
	case smsRequested:
		to, text = f.text("to"), f.text("text")
	default:
		return "a message", typ + " is not a text message"
	}
	what = "text message for " + to
	long := utf8.RuneCountInString(text)
	switch tenant := f.number("tenant_id"); {
	case long > smsProvider:
		return what, fmt.Sprintf("%d characters, the provider takes %d", long, smsProvider)
	case fixed:
		return what, ""
	case tenant == unknownTenant:
		return what, fmt.Sprintf("tenant %d is not known", tenant)
	case long > smsColumn:
		return what, fmt.Sprintf("%d characters, the column holds %d", long, smsColumn)
	}
	return what, ""
}

// openAccount is the worker of the billing service, which has no bug. With this service, the demo
// shows that a requeue to one queue of a fan-out does not reach the other queues.
func openAccount(types schemas, m amqp.Delivery) (what, refusal string) {
	_, f, err := decodeMessage(types, m)
	if err != nil {
		return "a message", err.Error()
	}
	return "account of " + f.message("customer").text("email"), ""
}
