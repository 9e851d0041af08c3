package view

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// whole is the list of the samples that stand for a page or a part of one: one in each of its
// layouts. A golden file has all of their HTML, and make test checks them with axe.
var whole = []string{
	"access", "account", "apply", "audit", "by-hand-curl", "confirm-all", "confirm-edit",
	"confirm-purge", "confirm-requeue", "connection", "digest", "edit", "error-with-details", "glossary", "group", "letter-decoded",
	"letter-headers", "letter-history", "letter-json", "letter-masked", "letter-raw", "letter-timeline",
	"letter-peek", "letter-undecoded", "letters", "letters-empty", "letters-first-run", "letters-mistake", "operation",
	"operations", "overview", "overview-first-run", "queue", "queues", "rules", "rules-tested",
	"schema-remove", "schema-upload", "schemas", "settings", "sign-in", "triage", "triage-zero", "welcome",
}

// states are the other samples, with words of the text that only a page in this state has. A word
// that begins with ! must not be on the page.
var states = map[string][]string{
	"access-link": {
		"A link for priya",
		"https://dlo.example.com/welcome?code=dlo_x",
		"dlo does not show this link again. Send it to priya, who chooses a password with it. It works once,",
	},
	"access-off": {
		"dlo has no users of its own, because auth.users is not set in the configuration.",
		"dlo accepts no tokens, because auth.tokens",
	},
	"access-token": {
		"The token ci",
		"dlo does not show this token again. Programs send it as Authorization: Bearer",
	},
	"account-of-a-proxy": {"reader", "!Change the password", "!Where you are signed in"},
	"apply-done": {
		"The rules were applied: 1,408 letters have changed",
		"This is incomplete: dlo is stopping. Letters that were not reached are unchanged.",
		"101 letters were discarded, as known noise, and can be restored for 7 days.",
	},
	"apply-none": {
		"Nothing would change",
		"0 of 2,614 scheduled letters would change, 2,614 already match the rules. Nothing is changed yet.",
	},
	"apply-refused":  {"Nothing was changed: see the marked field.", "Type 101 to discard 101 letters."},
	"audit-empty":    {"Nothing has been done yet"},
	"audit-mistake":  {"Query error at character 8:", `there is no action "resolve" (did you mean resolved?)`},
	"audit-no-match": {"No entries match", "Clear the query"},
	"by-hand-json":   {"Copy as JSON", "The letter as the API gives it.", `"queue": "email-queue"`},
	"by-hand-masked": {
		"The letter has masked values, or it is unknown whether it does, so there is no command.",
		"Show with masked values",
		"!curl --user",
	},
	"by-hand-rabbitmqadmin": {
		"Copy as rabbitmqadmin",
		"Replace HOST, USER and PASSWORD.",
		"rabbitmqadmin --host HOST --username USER --password PASSWORD --vhost=/ publish exchange=amq.default",
	},
	"confirm-away": {"main is not connected: letters wait until it is back", "not known until it is back"},
	"confirm-discard": {
		"Discard 133 letters?",
		"They will not be retried. They can be restored for 7 days.",
		"Type 133 to confirm",
	},
	"confirm-hold": {"Hold 133 letters", "They are kept back, without retries, until someone releases them."},
	"confirm-mistyped": {
		"Nothing was started: see the marked fields.",
		"a rate is a number above 0, for example 50",
		"amq.gen-x belongs to the broker",
	},
	"confirm-none": {
		"Restore 0 letters",
		"None of the selected letters can be acted on; the reasons are below.",
	},
	"confirm-one":     {"Requeue 1 letter to the tail", "79c3aeae", "about 1 s for 1 letter, plus the canary wait"},
	"confirm-refused": {"Nothing was discarded.", "Type 133 to discard 133 letters."},
	"confirm-restore": {"Restore 133 letters", "They go back to dead; nothing is sent."},
	"connection-two": {
		"Not connected", "connection refused", "Virtual hostshop", "depth: unknown",
	},
	"digest-quiet": {
		"All clear: nothing needs you.",
		"Nothing died that needs a person. 31 letters recovered by retries.",
		"no channel is configured.",
	},
	"edit-again": {
		"This letter was edited before. Below is revision 2; a requeue sends revision 2.",
		"Start from the original",
		"That copy may already be in its queue. If so, both arrive.",
	},
	"edit-as-is": {
		"The body is sent unchanged:",
		"this body cannot be edited as JSON or text, as no type is known for its bytes: replace it as a whole",
		"the properties take 131203 bytes, more than the 120000 that fit into a frame",
	},
	"edit-mistakes": {
		"Nothing was sent: see the marked field.",
		"Line 3, column 9: to: put the masked value back, or write a new one",
		"it would send copies to other queues, so it cannot be set.",
		`"many" is no int32.`,
		"Say why, so that the next person understands the change.",
	},
	"edit-refused": {
		"It cannot be edited:",
		"the letter is requeued, and only a letter that can be requeued can be edited",
		"!Requeue edited copy",
	},
	"error-400": {"400", "Bad request", "Nothing was changed."},
	"error-403": {"403", "Not allowed", "Nothing was changed.", "See what you may do", "!another site"},
	"error-404": {
		"404", "Not found", "There is no group G-9999.",
		"A group keeps its number, even if it is merged or has no letters left. Check the number.",
	},
	"error-405": {
		"405", "Method not allowed", "This address does not accept that kind of request. Nothing was changed.",
	},
	"error-409": {
		"409",
		"The state has changed since you opened the page, and no longer allows this action. Nothing was changed.",
	},
	"error-413": {"413", "The request is larger than this address accepts. Nothing was changed."},
	"error-503": {"503", "Letters are safe: those not stored yet wait in RabbitMQ. Try again in a moment."},
	"group-back": {
		"Regressed",
		"Back since 08:25, after O-2 was quiet. It came back 1 h 13 min after notifications 2026.11.20-1 went live.",
	},
	"group-merged": {"Merged into", "where its letters are counted too.", "Split off G-418"},
	"group-quiet":  {"Not failing since 09:13. All its letters that were sent again stayed quiet."},
	"group-snoozed": {
		"Snoozed by ana until Fri 20 Nov 10:14 UTC, or 20 more letters, or another queue has it. Its letters",
		"Reopen",
		"No decisions yet.",
	},
	"letter-ambiguous": {
		"142 types fit equally well.",
		"Ambiguous: acme.notify.v1.EmailRequested, acme.notify.v1.PushRequested, acme.audit.v1.Record and 139 more.",
		"whole body used, 3 of 3 fields present",
		"Bind its queue",
	},
	"letter-edited": {
		"Edited by Lena Sato, revision 1 (template.name), not sent yet:",
		"The body below is the edited one; a requeue sends it. What was received stays, and is not sent.",
		"See what was changed",
	},
	"letter-edited-history": {"What the edits changed in the payload", "… 12 lines"},
	"letter-masked-headers": {"authorization", "••••", "Reveal"},
	"letter-masked-raw": {
		"Download unmasked",
		"It has masked values, or it is unknown whether it does. Only people who may reveal see its bytes, and",
		"•• •• •• •• •• •• •• ••",
		"!64 61 6e 61 40 65 78 61",
	},
	"letter-reported": {
		"reported by mail-worker 2026.11.20-1",
		"show the full error",
		"as counted by Celery",
		"6c2a41d0",
	},
	"letter-scheduled": {
		"retry 3 of 3 in 16m40s",
		"The next attempt is due",
		"waits in dlo's store; it can be requeued now, held or discarded.",
		"Retry now",
		"Reschedule",
	},
	"letter-type-refused": {
		`Nothing was applied: type "acme.Gone" is not registered; give the full name of a message type of a`,
	},
	"letter-unverified": {
		"Unverified:",
		"it did not come back while it was watched, but dlo could not see what became of it. The reason is in",
	},
	"letter-waits-in-the-broker": {
		"This letter waits in the broker, in dlo.wait.1000000, until 2026-11-20 09:18:00 UTC (in 4 min). The",
		"!Retry now",
	},
	"letter-waits-in-ttl": {
		"This letter waits in the broker, in dlo.wait.ttl, until 2026-11-20 09:18:00 UTC (in 4 min).",
		"came back from attempt 2, reason",
	},
	"letters-in-retry": {
		"No letter is dead or held, so letters in all states are shown.",
		"40 letters are being retried; the first can die at 09:32; nobody consumes sms-queue.",
	},
	"letters-all-states": {
		"10,000+ match",
		"1,204 letters are not in the text index yet. The count and the list below may grow.",
		"Counted over the newest 100,000 that match.",
		"1,308 letters received from 18 Nov 17:14 to 20 Nov 09:14 UTC, in steps of 1 h; the peak is 43, from 19",
		"dlo letters requeue -q '-queue:media-transcode before:2026-11-20T09:14:00.000Z'",
	},
	"letters-broker-down": {
		"Connection to broker main lost 42 s ago. Nothing is lost: dead letters wait in dlo.letters, orders_error.",
		"Error: connection refused. Retrying in 8 s.",
		"The disk is nearly full: 200 MiB free.",
	},
	"letters-doubted": {
		"These letters may be copies of letters that are stored already.",
		"Discard all 1,341 that match",
		"Release all 1,341 that match",
	},
	"letters-group": {"Retries of G-402", "Pause retries"},
	"letters-group-paused": {
		"Retries of G-402",
		"by Lena Sato: the bank is down until noon",
		"Resume",
		"!Pause retries",
	},
	"letters-group-queue-tripped": {
		"Tripped with its queue webhook-queue, 49 of 50 letters came back within 10 min, next probe in 4 min",
		"Pause retries",
	},
	"letters-no-match": {
		"No letters match",
		"0 of 2,705 letters match",
		"Without type:InvoicePaid",
		"Search all time",
	},
	"letters-scheduled": {"Letters, next due first", "in 16 min"},
	"operation-away": {
		"Waiting for the broker", "Waiting: main is not connected: letters wait until it is back.",
		"waiting for the broker, 539 to go", "2 of them on their way", "On its way", "!Running", "!sending",
	},
	"operation-canary-watched": {
		"watching the canary until 09:15:24 UTC, then 1,331 to go",
		"0 came back so far",
		"Already sent: 10.",
	},
	"operation-cancelled": {
		"Requeue 40 letters to the tail of webhook-queue", "10 of 40", "25.0%", "30 cancelled, left as they were",
		"!40 of 40", "!By origin queue",
	},
	"operation-discarded": {
		"1,341 discarded.",
		"Of these, 1,300 can still be restored, until retention purges them.",
	},
	"operation-done": {
		"803 discarded, 3 not sent and held, 3 skipped.",
		"Discard the 3 skipped",
		"None of them is discarded any more, so there is nothing to restore.",
	},
	"operation-holding": {
		"Nothing is sent yet. It begins in 8 s.",
		"Until then you can undo it completely.",
		"Undo",
	},
	"operation-looks-again": {"This page refreshes every 5 s."},
	"operation-over": {
		"1,335 quiet for 10 min, 3 did not come back, unverified, 3 came back, 6 skipped.",
		"6 letters were skipped. Try again once the cause is gone.",
		"2 groups are clear: none of their letters is dead, held or waiting to be retried.",
		"Resolve all 2",
	},
	"operation-paused": {"paused, 529 to go", "Resume", "a rate is a number above 0, for example 50"},
	"operation-purged": {"1,341 purged.", "Their bodies are erased. They cannot be brought back."},
	"operation-stopped": {
		"803 restored, 3 not sent and held, 3 skipped.",
		"cancelled 5 s ago, after 57 s",
		"Restore the 3 skipped",
	},
	"operation-stopped-itself": {
		"Stopped automatically: 6.2% of 813 came back, more than 5%. Nothing more is sent until someone resumes it.",
		"Resume",
	},
	"operation-tried": {"Requeue 1 letter to the tail", "1 came back.", "This letter"},
	"operation-waits": {"Waiting: webhook-queue has more than 10,000 ready. It continues once that is over."},
	"operation-watching": {
		"1,338 requeued and still being watched, 3 came back.",
		"Watching until 09:20:00 UTC: what comes back is still counted.",
	},
	"operations-empty": {
		"none running",
		"No operations yet",
		"When you requeue, discard or hold letters, the results appear here.",
	},
	"overview-broker-down": {
		"It is not known what has died on broker main since it was last connected.",
		"not connected: connection refused",
	},
	"overview-never-connected": {"not yet.", "Connect the broker first."},
	"overview-no-trial": {
		"Not available: broker main has no dead-letter exchange in the configuration, and the test letter needs",
	},
	"overview-observing": {
		"dlo only observes all queues of broker main.",
		"It retries nothing and notifies nobody until observe is taken out of the configuration.",
	},
	"overview-quiet": {
		"Nothing needs a person yet.",
		"No letter arrived in the last 24 hours",
		"1,204 letters not in the text index yet",
	},
	"overview-stale": {
		"Nothing has failed since timeline 2026.11.20-3 went live at 08:14.",
		"Open the 97 letters",
		"1,204 letters may be copies of stored letters.",
		"Discard all 1,204",
		"Release all 1,204",
	},
	"overview-trial-begun": {"A test letter is on its way.", "Arrived: once the consumer of"},
	"overview-trial-failed": {
		"It did not get all the way: user dlo lacks a permission that a trial needs (ACCESS_REFUSED).",
		"rabbitmqctl set_permissions -p '/' 'dlo'",
		"Try it again",
	},
	"overview-tried": {
		"It went the whole way.",
		"its consumer rejected the message after 20 ms, and it is letter 80d2359f",
		"Hello from Dead Letter Office.",
	},
	"overview-trying": {"A test letter is on its way.", "80d2359f", "Requeued: by its rule, to the tail of"},
	"queue-unknown": {
		"The broker has not been read: its figures are unknown.",
		"none, as far as dlo knows",
		"No letter of this queue has needed anyone yet.",
	},
	"queues-empty": {
		"Not checked yet.", "Queues appear here when dlo has read a broker, or when a letter has died in one.",
	},
	"queues-refused": {
		"Nothing was changed: the retries of queue sms-queue of broker main are paused already",
		"dlo cannot look at main, vhost /: the API answered 500",
		"It is therefore not known whether a queue loses its dead letters.", "Hide dlo's own queues",
		"main is not connected: letters wait until it is back", "main /",
	},
	"rules-apply-mistaken": {`there is no field "queu"`},
	"rules-misread": {
		`Line 2, column 3: there is no key "retires" in rules; the keys are dead, retry`,
		"and 2 more",
	},
	"rules-no-overrides": {
		"The rules in use are too long to be shown here: 68 KiB. Leave the field empty to test them, or paste others.",
		"No retries are held back, and no redirect is saved",
	},
	"rules-several":      {"broker main, vhost /", "second, vhost shop"},
	"rules-try-no-query": {`there is no field "queu"`, "Leave the field empty to test them, or paste others."},
	"rules-what-if": {
		"Looked at 470 of 2,614 letters that are dead, held or scheduled, newest first, at most 500. 27 more",
	},
	"rules-wrong": {"amq.gen-x belongs to the broker"},
	"schema-upload-changed": {
		"Nothing was changed: the set has another version now.",
		"51 types and 1 enum added, 1 changed, 1 removed, which still decode old letters.",
		"acme.many.v1.Type8",
	},
	"schema-upload-new": {
		"New set notify",
		"Nothing is changed yet.",
		"0 stored letters have a type that the new version would decode, or would decode differently.",
	},
	"schema-upload-same": {"Set notify stays as it is", "It is the version in use.", "!Use this version"},
	"schemas-asked": {
		"2 schemas cannot be read.",
		"What is in use stays in use.",
		"notify.proto: line 3: edition 2024 is not understood",
		"More types match: type a longer word.",
		"// A mail that somebody asked for.",
	},
	"schemas-empty": {
		"No message types are registered.",
		"Bodies show field numbers and bytes until there is one. Upload a descriptor set or a .proto file.",
	},
	"schemas-unknown": {
		"No type or field has that in its name.",
		"acme.Gone: no set defines this type.",
		"There is no set of this name in use.",
		"305 letters have not been read by this version yet, so it is unknown how they decode.",
	},
	"settings-copy": {
		"dlo cannot save this", "/etc/dlo/dlo.yaml is not writable by dlo.", "as rule 2 of the list under rules",
		"Delays of queue sms-queue", "!Save and apply",
	},
	"settings-mistakes": {
		"Nothing was saved: /etc/dlo/dlo.yaml has changed since you looked at the change; check it again.",
		`"soon" is not a duration.`, "No such channel.", "It is masked.", "There is no such rule.",
	},
	"settings-saved": {"Saved, and in use", "!Save and apply"},
	"sign-in-again": {
		"To see masked data, to purge, and to change who may do what, give your password again. It counts for",
		"Continue",
	},
	"sign-in-wrong":  {"That name and password do not match. 4 tries left."},
	"triage-mine":    {"All 5 groups shown"},
	"triage-mistake": {"Query error at character 1:", "there is no field colour"},
	"triage-quiet": {
		"All 5 groups shown: their letters were sent again, and none of them", "quiet since 09:13", "Resolve all 5",
	},
	"triage-resolved": {"resolved at 08:14 UTC by ana in 2026.11.20-2", "Reopen"},
	"triage-retrying": {"next retry ", "quiet from ", "next retry or before "},
	"triage-snoozed":  {"until Fri 20 Nov 10:14 UTC, or 20 more letters, or another queue has it", "Reopen"},
	"welcome-late":    {"This link is not valid. It works once, for 72 hours. An admin can make another one."},
}

// TestPages compares the main part of each page with its golden file. Of a page in another state,
// it looks for the words that this state has. They must distinguish the state from each page that
// has a golden file and the same name before the first dash.
func TestPages(t *testing.T) {
	all := pages()
	shown := map[string]string{}
	for name, c := range all {
		shown[name] = strings.Join(strings.Fields(text(parse(t, render(t, c)))), " ")
	}
	for _, name := range whole {
		t.Run(name, func(t *testing.T) { testenv.GoldenHTML(t, name+".html", inside(t, render(t, all[name]), "main")) })
	}
	for name, words := range states {
		t.Run(name, func(t *testing.T) {
			for _, word := range wrong(shown[name], words) {
				t.Errorf("%q is not as it should be; the text of the page is %s", word, shown[name])
			}
			kind, _, _ := strings.Cut(name, "-")
			for _, other := range whole {
				if k, _, _ := strings.Cut(other, "-"); k == kind && len(wrong(shown[other], words)) == 0 {
					t.Errorf("the same is true of %s: %q", other, words)
				}
			}
		})
	}
	named := slices.Sorted(slices.Values(slices.Concat(whole, slices.Collect(maps.Keys(states)))))
	if samples := slices.Sorted(maps.Keys(all)); !slices.Equal(named, samples) {
		t.Errorf(
			"each sample needs a golden file or words: the samples are\n%v, and there are expectations for\n%v",
			samples, named,
		)
	}
}

// wrong returns the words that are missing in a text, and those with ! that are in it.
func wrong(shown string, words []string) (found []string) {
	for _, word := range words {
		word, absent := strings.CutPrefix(word, "!")
		if strings.Contains(shown, word) == absent {
			found = append(found, word)
		}
	}
	return found
}

// TestForms compares all forms of all samples with testdata/forms.txt: the method and the path, and
// the names and values of the buttons of actions. It also compares the commands that the pages show
// for copying. `go test -update` rewrites the file.
func TestForms(t *testing.T) {
	lines := map[string]bool{}
	for _, c := range pages() {
		each(parse(t, render(t, c)), func(n *html.Node) {
			switch n.Data {
			case "form":
				line := strings.TrimSpace(strings.ToUpper(attrOr(n, "method", "get")) + " " + target(n, "action"))
				if lines[line] = true; strings.HasPrefix(line, "GET") {
					return // its buttons are values of the query
				}
				each(n, func(n *html.Node) {
					name, _ := attr(n, "name")
					if value, ok := attr(n, "value"); ok && name != "" && (n.Data == "button" || name == "action") {
						lines[line+" "+name+"="+value+strings.TrimSuffix(" "+target(n, "formaction"), " ")] = true
					}
				})
			case "code", "pre", "textarea":
				if shown := strings.TrimSpace(text(n)); strings.HasPrefix(shown, "dlo ") {
					lines[shown] = true
				}
			}
		})
	}
	testenv.GoldenText(t, "forms.txt", strings.Join(slices.Sorted(maps.Keys(lines)), "\n")+"\n")
}

// target returns the address in an attribute, without its query.
func target(n *html.Node, key string) string {
	path, _, _ := strings.Cut(attrOr(n, key, ""), "?")
	return path
}

func attrOr(n *html.Node, key, otherwise string) string {
	if value, ok := attr(n, key); ok {
		return value
	}
	return otherwise
}
