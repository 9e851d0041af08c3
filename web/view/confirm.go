package view

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// ConfirmPage shows the effects of an action before the action starts.
type ConfirmPage struct {
	Shell
	deadletter.Plan
	Groups   []GroupName              // the groups that the query names
	Takes    []deadletter.OperationID // the operations whose remaining letters this action takes over
	IDs      []deadletter.ID          // all chosen letters, eligible or not; if empty, Query selects the letters
	Query    string                   // the query with fixed times
	Except   []deadletter.ID          // the letters excluded from those that Query selects
	Typed    url.Values               // the fields of the form as they were typed, or as they are by default
	Mistakes map[string]string        // the error message of each field by its name
	Problem  string                   // why the last attempt was refused
	Key      string                   // the idempotency key: pressing the button twice starts one operation
	Return   string                   // the URL to which Cancel leads
	Restore  string                   // how long a discarded letter can be restored, for example "for 7 days", or ""
	Samples  []ConfirmSample          // the results of an edit for some of the letters
	Revision int                      // the revision sent instead of the body if one letter was chosen; 0 is the body
}

// GroupName names a group on a page that does not show its row.
type GroupName struct {
	ID    deadletter.GroupID
	Title string
}

// groupsNamed is the maximum number of groups that the page of a plan names.
const groupsNamed = 5

// ConfirmSample is the result of an edit for one letter, or the reason why the edit fails.
type ConfirmSample struct {
	Letter  deadletter.ID
	Diff    []payload.DiffLine
	Problem string
}

const patchExample = `[{"op": "replace", "path": "/template/name", "value": "welcome_v2"}]`

func patchRows(text string) string {
	return strconv.Itoa(min(max(strings.Count(text, "\n")+1, 4), 16))
}

// sampleTitle returns a title that says how many letters of the sample can be edited.
func (p ConfirmPage) sampleTitle() string {
	fit := 0
	for _, s := range p.Samples {
		if s.Problem == "" {
			fit++
		}
	}
	return "On a sample: " + Count(fit) + " of " + LetterCount(len(p.Samples)) + " can be edited this way"
}

// leavesRestored reports whether the plan leaves out letters because the store was restored from a
// copy. Such letters may have been sent after the copy was made.
func (p ConfirmPage) leavesRestored() bool {
	return slices.ContainsFunc(
		p.Skipped, func(s deadletter.PlanSkip) bool { return s.Reason == deadletter.WhyRestored },
	)
}

// haltedWords returns words such as "paused at 12:30": the state in which an operation waits for a
// person, and the time at which the wait began.
func haltedWords(state deadletter.OperationState, now, at time.Time) string {
	return string(state) + " at " + hourMinute(now, at)
}

// TypedFrom is the largest number of letters that can be discarded without typing the number.
const TypedFrom = 100

// MustType reports whether a person who confirms an action has to type the number of its letters.
// That is so for discards of many letters and for all purges.
func MustType(v deadletter.Verb, n int) bool {
	return v == deadletter.VerbDiscard && n > TypedFrom || v == deadletter.VerbPurge && n > 0
}

// TakenOf returns how many of n eligible letters an action takes. The parameter "limit" is the
// maximum number of letters; 0 = no maximum.
func TakenOf(n, limit int) int {
	if limit > 0 {
		return min(n, limit)
	}
	return n
}

func (p ConfirmPage) letterCount() int { return TakenOf(p.Eligible, p.First) }

// TypedCount reports whether a typed text is the number n. It ignores thousands separators.
func TypedCount(text string, n int) bool {
	return strings.NewReplacer(",", "", " ", "", ".", "", "'", "").Replace(text) == strconv.Itoa(n)
}

func joinIDs(ids []deadletter.ID) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(" " + string(id))
	}
	return strings.TrimPrefix(b.String(), " ")
}

func (p ConfirmPage) title() string {
	switch {
	case p.Action == deadletter.VerbRequeue && p.Typed.Get("to") != "" && p.Mistakes["to"] == "":
		return "Requeue " + LetterCount(p.letterCount()) + " to another queue"
	case p.Action == deadletter.VerbEdit:
		return "Edit and requeue " + LetterCount(p.letterCount())
	case p.Action == deadletter.VerbRequeue:
		return "Requeue " + LetterCount(p.letterCount()) + " to the tail"
	case isDestructive(p.Action):
		return VerbWord(p.Action) + " " + LetterCount(p.letterCount()) + "?"
	}
	return VerbWord(p.Action) + " " + LetterCount(p.letterCount())
}

// effectSentences describes the effect of an action, and whether the action can be undone.
func (p ConfirmPage) effectSentences() string {
	pick := func(one, many string) string { return plural(p.letterCount(), one, many) }
	switch p.Action {
	case deadletter.VerbRequeue:
		what := "It goes unchanged"
		if p.Revision > 0 {
			what = "Its edited copy, revision " + Count(p.Revision) + ", goes"
		}
		return pick(
			what+" to the tail of its origin queue, through the default exchange.",
			"Each letter goes to the tail of its own origin queue, through the default exchange: unchanged, or as it was last edited.",
		) +
			" Other queues bound to the same exchange do not receive it again. Sent letters cannot be recalled." +
			p.undoSentence()
	case deadletter.VerbEdit:
		return pick(
			"An edited copy goes to the tail of its origin queue. The original is kept and is not sent.",
			"An edited copy of each letter goes to the tail of its own origin queue. The originals are kept and are not sent.",
		) +
			" Sent letters cannot be recalled." + p.undoSentence()
	case deadletter.VerbRetryNow:
		return pick("Its retry is due now.", "Their retries are due now.") +
			" The queue's rate, pauses and breaker still apply, and the attempt counts as a retry of the rule."
	case deadletter.VerbReschedule:
		return pick("Its retry is due at the chosen time.", "Their retries are due at the chosen time.") +
			" The queue's rate, pauses and breaker still apply."
	case deadletter.VerbDiscard:
		text := pick("It will not be retried. It can be restored ", "They will not be retried. They can be restored ")
		if p.Restore != "" {
			return text + p.Restore + "."
		}
		return text + "until they are purged."
	case deadletter.VerbRestore:
		return pick("It goes back to dead; nothing is sent.", "They go back to dead; nothing is sent.")
	case deadletter.VerbHold:
		return pick(
			"It is kept back, without retries, until someone releases it.",
			"They are kept back, without retries, until someone releases them.",
		)
	case deadletter.VerbRelease:
		return pick(
			"It continues where it was stopped: a retry that is due is sent.",
			"They continue where they were stopped: retries that are due are sent.",
		) +
			" Sent letters cannot be recalled."
	case deadletter.VerbPurge:
		return pick("Its body is erased for good.", "Their bodies are erased for good.") +
			" Their history stays, without content. A purge cannot be undone." + p.undoSentence()
	}
	return ""
}

// undoSentence returns a sentence on how long after the confirmation the action can be undone.
func (p ConfirmPage) undoSentence() string {
	if p.Pace.Hold <= 0 {
		return ""
	}
	return " It starts " + Duration(p.Pace.Hold) + " after you confirm; until then you can undo it."
}

// scopeSentence returns a sentence about the letters that a query selected.
func (p ConfirmPage) scopeSentence() string {
	text := LetterCount(p.Total) + " matched at " + p.Until.UTC().Format("15:04:05") + " UTC"
	if n := len(p.Except); n > 0 {
		text += ", " + Count(n) + " left out"
	}
	return text + ". Later arrivals are not included."
}

// labels returns the labels of the brokers in the plan, without repetition.
func (p ConfirmPage) labels() []mark {
	return p.labelsOf(func(broker string) bool {
		return slices.ContainsFunc(p.Queues, func(q deadletter.PlanQueue) bool { return q.Broker == broker })
	})
}

func depthWords(f deadletter.QueueFacts) string {
	switch {
	case f.Known && !f.Exists:
		return "does not exist"
	case f.Ready < 0:
		return "unknown"
	}
	return Count(f.Ready) + " ready"
}

func consumerWords(f deadletter.QueueFacts) string {
	switch {
	case f.Known && !f.Exists:
		return "none"
	case f.Consumers < 0:
		return "unknown"
	}
	return Count(f.Consumers)
}

// limitWords describes the length limits of a queue. It also says whether the queue has no
// dead-letter exchange.
func limitWords(f deadletter.QueueFacts) string {
	if f.Known && !f.Exists {
		return ""
	}
	var parts []string
	if f.MaxLength > 0 {
		parts = append(parts, Count(f.MaxLength)+" messages")
	}
	if f.MaxBytes > 0 {
		parts = append(parts, Size(f.MaxBytes))
	}
	if len(parts) == 0 && f.MaxLength == 0 && f.MaxBytes == 0 && f.Known {
		parts = append(parts, "none")
	}
	if f.DeadLetters == deadletter.DeadLettersNowhere {
		parts = append(parts, "no dead-letter exchange")
	}
	return line(unknownIf(strings.Join(parts, ", ")), 80)
}

func confirmClass(v deadletter.Verb) string {
	if isDestructive(v) {
		return "btn-danger-solid"
	}
	return "btn-primary"
}

func placeholder(v deadletter.Verb) string {
	switch v {
	case deadletter.VerbEdit:
		return "e.g. template welcome_v3 was never released"
	case deadletter.VerbRequeue:
		return "e.g. fixed in notifications 2026.11.20-2"
	case deadletter.VerbDiscard, deadletter.VerbPurge:
		return "e.g. test data"
	case deadletter.VerbHold:
		return "e.g. until the vendor answers"
	}
	return ""
}

// canaryHint explains the field for the number of letters of the canary. If the letters have
// several causes, it says how many of them the canary tries.
func (p ConfirmPage) canaryHint() string {
	const hint = "letters; 0 = none"
	if n := p.CanaryCauses(); n > 0 {
		return hint + "; canary: " + LetterCount(min(p.Pace.Canary, p.Eligible)) + " of " + Count(n) + " causes"
	}
	return hint
}

// sendingTime says how long it takes to send the letters at the rate in the form. It returns "" if
// the time is not known.
func (p ConfirmPage) sendingTime() string {
	rate, err := strconv.ParseFloat(p.Typed.Get("rate"), 64)
	n := p.letterCount()
	if err != nil || rate <= 0 || n == 0 {
		return ""
	}
	return "about " + Duration(max(time.Duration(float64(n)/rate*float64(time.Second)), time.Second).Round(time.Second)) + " for " + LetterCount(n) + ", plus the canary wait"
}

// isQuick reports whether Enter confirms the plan: it requeues at most as many letters as a canary,
// and nothing is to be read first. For other plans, Enter cancels.
func (p ConfirmPage) isQuick() bool {
	n, err := strconv.Atoi(p.Typed.Get("canary"))
	return p.Action == deadletter.VerbRequeue && err == nil && p.letterCount() <= n &&
		len(p.Warnings)+len(p.Skipped)+len(p.Takes) == 0 &&
		!slices.ContainsFunc(p.Queues, func(q deadletter.PlanQueue) bool { return q.Warning != "" })
}

// paceWords sums up the options for sending, as the fields of the form have them. The canary and
// the limit for those that come back say nothing about letters that are all sent at once.
func (p ConfirmPage) paceWords() string {
	text := line(p.Typed.Get("rate"), 20) + " a second"
	if n, err := strconv.Atoi(p.Typed.Get("canary")); err == nil && n > 0 && n < p.letterCount() {
		text = LetterCount(n) + " first, then a wait of " + line(p.Typed.Get("wait"), 20) + "; the rest " + text
	}
	if stop := p.Typed.Get("stop_at"); stop != "0" && p.letterCount() > 1 {
		text += "; stops if more than " + line(stop, 20) + "% come back"
	}
	return text
}

// errorAttributes returns the HTML attributes that link a field to its error message.
func (p ConfirmPage) errorAttributes(name string) templ.Attributes {
	a := fieldWrong("confirm-"+name, p.Mistakes[name])
	if a == nil {
		return nil
	}
	for _, first := range []string{
		"canary", "wait", "rate", "stop_at", "order", "first", "max_depth", "to", "due", "patch", "reason", "count",
	} {
		if p.Mistakes[first] != "" {
			a["autofocus"] = first == name // the first invalid field gets the focus instead of the safe button
			break
		}
	}
	return a
}

// planned is the maximum number of queues in the table of a plan.
const planned = 50

// opensMore reports whether the collapsed part of the form contains rarely used input or an error.
func (p ConfirmPage) opensMore() bool {
	for _, name := range []string{"canary", "wait", "rate", "stop_at"} {
		if p.Mistakes[name] != "" {
			return true
		}
	}
	for _, name := range []string{"first", "max_depth", "to", "reset"} {
		if p.Mistakes[name] != "" || p.Typed.Get(name) != "" {
			return true
		}
	}
	return p.Mistakes["order"] != "" || p.Typed.Get("order") == "newest"
}
