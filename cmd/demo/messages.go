package main

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// These values make the services fail until the fix is deployed.
const (
	missingTemplate = "welcome_v3"
	unknownTenant   = 48213
	smsColumn       = 160 // width of the column in which the sms service stores a text, in characters
)

// smsProvider is the maximum length of a text message, in characters. The provider of the demo's
// SMS service rejects longer texts, even after `make demo-fix`, so a person has to shorten them.
const smsProvider = 480

// kind says which event in the shop a message reports, which services get the message, and which of
// them reject it.
type kind int

const (
	registered        kind = iota // goes to all three services, and each of them accepts it
	registeredBadMail             // goes to all three services; the email service does not have the template
	registeredLongSMS             // goes to all three services; the text is longer than the column of the sms service
	// goes to all three services; two of them do not know the tenant, so there are two letters
	registeredTenant
	mail            // goes only to the email service
	mailBadTemplate //
	sms             // goes only to the sms service
	smsTooLong      //
	smsFarTooLong   // fits the column after the fix, but is too long for the provider
	mailHostile     // has HTML in values that dlo shows to people
	oddJSON         // like the next two kinds, it is not valid protobuf, so no fix helps
	oddText         //
	oddBytes        //
)

// message is a message that the shop publishes, with its exchange and its routing key.
type message struct {
	exchange, key string
	publishing    amqp.Publishing
}

var customers = []struct{ name, email, phone, language string }{
	{"Dana Whitfield", "dana@example.com", "+44 20 7946 0011", "en"},
	{"Emeka Obi", "emeka@example.com", "+234 1 555 0142", "en"},
	{"Søren Kjær", "soren@example.com", "+45 55 50 11 22", "da"},
	{"María Peña", "maria@example.com", "+34 910 555 018", "es"},
	{"王小明", "xiaoming@example.com", "+86 10 5555 0199", "zh"},
	{"Lena Vogt", "lena@example.com", "+49 30 5550 0136", "de"},
	{"Ravi Kumar", "ravi@example.com", "+91 22 5555 0173", "en"},
}

const (
	shortText = "Welcome aboard! Your account is ready."
	longText  = "Welcome aboard! Your account is ready, your trial runs for thirty days, and our support team answers around the clock. " +
		"Reply HELP for help, STOP to stop, or open the app to choose the plan that fits your team best."
	termsText = " By using the app you agree to its terms: the plan renews by itself each month until you cancel it, charges are due on the first day, unused days are not paid back, and prices may change with a notice of " +
		"thirty days. You find the terms, the price list and the list of countries in which the service can be used in the app, under Help, and we send you a copy by post when you ask for one."
	hostileText = `<script>alert("dlo")</script><img src=x onerror=alert(1)>`
)

// samples creates the messages of the shop. The same number and kind always give the same message,
// apart from the time.
type samples struct {
	types schemas
	now   func() time.Time
}

// message returns the message that has the number n and the kind k.
func (s samples) message(n int, k kind) (message, error) {
	c := customers[n%len(customers)]
	tenant := 40100 + n%7
	at := s.now().UTC().Format("2006-01-02T15:04:05.000Z")
	p := amqp.Publishing{
		DeliveryMode:  amqp.Persistent,
		MessageId:     fmt.Sprintf("shop-%06d", n),
		CorrelationId: fmt.Sprintf("order-%d", 70000+n/2),
		AppId:         "shop-web",
		Timestamp:     s.now(),
		Headers:       amqp.Table{"traceparent": fmt.Sprintf("00-%032x-%016x-01", 0x5eed0000+n, 0xa0000+n)},
	}
	var err error
	switch k {
	case registered, registeredBadMail, registeredLongSMS, registeredTenant:
		template, text := "welcome_v2", shortText
		switch k {
		case registeredBadMail:
			template = missingTemplate
		case registeredLongSMS:
			text = longText
		case registeredTenant:
			tenant = unknownTenant
		}
		p.ContentType, p.Type = "application/protobuf", customerRegistered
		p.Body, err = s.types.encode(customerRegistered, map[string]any{
			"event_id":      fmt.Sprintf("evt-%06d", n),
			"registered_at": at,
			"tenant_id":     tenant,
			"plan":          []string{"PLAN_FREE", "PLAN_TEAM"}[n%2],
			"customer":      map[string]any{"name": c.name, "email": c.email, "phone": c.phone, "language": c.language},
			"welcome":       map[string]any{"email_template": template, "sms_text": text},
		})
		return message{eventsExchange, "customer.registered", p}, err

	case mail, mailBadTemplate, mailHostile:
		template, name := "welcome_v2", c.name
		if k != mail {
			template = missingTemplate
		}
		if k == mailHostile {
			name = hostileText
			p.Headers["x-campaign"] = `"><b onmouseover=alert(2)>summer</b>`
		}
		p.AppId = "shop-crm"
		p.ContentType = "application/protobuf; messageType=" + emailRequested
		p.Body, err = s.types.encode(emailRequested, map[string]any{
			"to":           c.email,
			"template":     template,
			"tenant_id":    tenant,
			"requested_at": at,
			"variables":    map[string]any{"name": name, "language": c.language},
		})

	case sms, smsTooLong, smsFarTooLong:
		text := map[kind]string{sms: shortText, smsTooLong: longText, smsFarTooLong: longText + termsText}[k]
		var body []byte
		body, err = s.types.encode(smsRequested, map[string]any{
			"to": c.phone, "text": text, "tenant_id": tenant, "requested_at": at,
		})
		// This publisher is old. It sends the body as base64 in a text message that does not name the
		// type. In dlo.yaml, the queue is therefore bound to the type.
		p.AppId, p.ContentType, p.Body = "shop-legacy", "text/plain", []byte(base64.StdEncoding.EncodeToString(body))
		p.Headers["authorization"] = "Bearer demo-" + strings.Repeat("x", 16) // dlo.yaml masks this header
		return message{requestsExchange, smsKey, p}, err

	case oddJSON:
		p.AppId, p.ContentType = "shop-import", "application/json"
		p.Body = []byte(
			`{"to":"` + c.email + `","template":"welcome_v2","note":"sent as JSON by an import script","retries":0}`,
		)
	case oddText:
		p.AppId, p.ContentType = "ops", "text/plain"
		p.Body = []byte("test, please ignore")
	case oddBytes:
		p.AppId, p.ContentType = "shop-crm", "application/protobuf; messageType="+emailRequested
		p.Body = []byte{0x0a, 0xff, 0xff, 0xff, 0x7f, 0xde, 0xad, 0xbe, 0xef}
	}
	return message{requestsExchange, mailKey, p}, err
}

// burst returns the kinds of the messages that the shop sends first. Before the fix, the services
// reject some of these messages, so that 60 letters die. The services accept all other messages.
func burst() []kind {
	var list []kind
	for _, part := range []struct {
		kind  kind
		times int
	}{
		{registeredBadMail, 14},
		{registeredLongSMS, 8},
		{registeredTenant, 6},
		{mailBadTemplate, 12},
		{smsTooLong, 6},
		{smsFarTooLong, 1}, // the last message of the burst, so that it is not among the first letters of a requeue
		{smsTooLong, 3},
		{mailHostile, 1},
		{oddJSON, 1},
		{oddText, 1},
		{oddBytes, 1},
		{registered, 12},
		{mail, 8},
		{sms, 5},
	} {
		for range part.times {
			list = append(list, part.kind)
		}
	}
	mixed := make([]kind, 0, len(list))
	for i := range list { // 79 messages; 79 is a prime number, so each index occurs exactly once
		mixed = append(mixed, list[i*33%len(list)])
	}
	return mixed
}

// trickle returns the kind of a message that the shop sends after the burst. The parameter n counts
// these messages from 0. The shop sends one of them a second. Before the fix, every fifth of them
// fails.
func trickle(n int) kind {
	failing := []kind{registeredBadMail, smsTooLong, registeredTenant, mailBadTemplate, registeredLongSMS}
	passing := []kind{registered, mail, sms, registered}
	if n%5 == 4 {
		return failing[n/5%len(failing)]
	}
	return passing[n%5]
}
