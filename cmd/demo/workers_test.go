package main

import (
	"strings"
	"testing"
)

func TestWorkers(t *testing.T) {
	t.Parallel()
	types := mustLoad(t)
	for _, c := range []struct {
		name    string
		queue   string
		kind    kind
		fixed   bool
		refusal string
	}{
		{"a mail", emailQueue, mail, false, ""},
		{"a mail without its template", emailQueue, mailBadTemplate, false, "no template welcome_v3"},
		{"the same after the fix", emailQueue, mailBadTemplate, true, ""},
		{"a customer", emailQueue, registered, false, ""},
		{"a customer whose mail has no template", emailQueue, registeredBadMail, false, "no template welcome_v3"},
		{"that customer's text message is fine", smsQueue, registeredBadMail, false, ""},
		{
			"a customer with a long text message", smsQueue, registeredLongSMS, false,
			"214 characters, the column holds 160",
		},
		{"that customer's mail is fine", emailQueue, registeredLongSMS, false, ""},
		{"an unknown tenant, mail", emailQueue, registeredTenant, false, "tenant 48213 is not known"},
		{"an unknown tenant, text message", smsQueue, registeredTenant, false, "tenant 48213 is not known"},
		{"an unknown tenant after the fix", smsQueue, registeredTenant, true, ""},
		{"billing takes every customer", billingQueue, registeredTenant, false, ""},
		{"a text message", smsQueue, sms, false, ""},
		{"a long text message", smsQueue, smsTooLong, false, "the column holds 160"},
		{"a long text message after the fix", smsQueue, smsTooLong, true, ""},
		{"a text message that is far too long", smsQueue, smsFarTooLong, false, "the provider takes 480"},
		{"the same after the fix: only an edit helps", smsQueue, smsFarTooLong, true, "the provider takes 480"},
		{"HTML in a mail", emailQueue, mailHostile, true, ""},
		{"JSON, after the fix too", emailQueue, oddJSON, true, "application/json is not protobuf"},
		{"text, after the fix too", emailQueue, oddText, true, "text/plain is not protobuf"},
		{"noise, after the fix too", emailQueue, oddBytes, true, "not a valid acme.notify.v1.EmailRequested"},
		{"a mail in the wrong queue", smsQueue, mail, true, "is not a text message"},
	} {
		_, d := sample(t, types, 5, c.kind)
		what, refusal := workers(types)[c.queue](d, c.fixed)
		if what == "" || (refusal == "") != (c.refusal == "") || !strings.Contains(refusal, c.refusal) {
			t.Errorf("%s: %q refused with %q, want %q", c.name, what, refusal, c.refusal)
		}
	}
}
