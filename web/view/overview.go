package view

import (
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// OverviewPage is the first page. It describes the situation in a sentence and then in numbers.
type OverviewPage struct {
	Shell
	Range     string // the time range of the chart, which is one of Presets
	Arrivals  deadletter.Histogram
	Dead      int
	Held      int
	Aside     int // the number of dead and held letters in snoozed or resolved groups
	InRetry   InRetry
	Standing  deadletter.Standing
	Worst     *deadletter.Group     // the worst failing group, or nil
	Fix       *deadletter.Deploy    // the first deploy after the last death, or nil
	ByPeople  int                   // letters of the chart that people requeued and that did not come back
	HeldBack  bool                  // a circuit breaker stops retries
	Groups    []deadletter.GroupRow // the group in which most letters need a person comes first
	MoreThan  bool                  // there are more groups than are shown
	Disk      string                // the known room for letters in words, or ""
	Backup    *deadletter.Backup    // the newest scheduled backup; nil if there is none
	Told      []string              // the channels that are notified of problems; nil if unknown
	Channels  []deadletter.Channel  // the channels of the configuration
	Unindexed int                   // the number of letters that a search for words cannot find yet
	Restore   string                // how long a discarded letter can be restored, or ""
	FirstRun  *FirstRun
	Halted    []deadletter.Operation // the operations that wait for a person
	Copies    int                    // the number of letters that may be copies of stored letters
	Doubted   All                    // selects these letters
	Lag       time.Duration          // how late the oldest due retry is; 0 if no retry is late
	NoticeAt  time.Time              // when the last notice was sent; zero if none was sent
	NoticeTo  string                 // the channel of that notice
	Deploys   []deadletter.Deploy    // the deploys in the time range of the chart, newest first
}

// tile is a number on the overview with a link to the letters that it counts.
type tile struct{ Label, Icon, Tone, Value, Sub, Link string }

// sums returns the sum of all bars for each outcome.
func sums(bars []deadletter.Bar) deadletter.Bar {
	var all deadletter.Bar
	for _, b := range bars {
		all.Waiting += b.Waiting
		all.Recovered += b.Recovered
		all.Dead += b.Dead
		all.Discarded += b.Discarded
	}
	return all
}

// tiles returns the tiles whose number is not 0, and the others.
func (p OverviewPage) tiles() (some, none []tile) {
	in := sums(p.Arrivals.Bars)
	since := " since:" + Stamp(p.Arrivals.From) // the query begins where the first bar of the chart begins
	quiet := "none so far"
	if in.Recovered > 0 {
		quiet = Count(max(0, in.Recovered-p.ByPeople)) + " by retries, " + Count(min(p.ByPeople, in.Recovered)) +
			" by people"
	}
	discarded := "restorable until purged"
	if p.Restore != "" {
		discarded = "restorable " + p.Restore
	}
	all := []tile{
		{
			"Dead", "x", "bad", Count(p.Dead), "+" + Count(in.Dead) + " in " + p.rangeWord(),
			LettersURL("state:dead", "", ""),
		},
		{"Held", "pause", "", Count(p.Held), "held automatically or by someone", LettersURL("state:held", "", "")},
		{
			"In retry", "clock", "wait", Count(p.InRetry.Letters), "waiting, or sent and still watched",
			retryURL(),
		},
		{
			"Quiet, " + shortRange(p.Range), "check", "good", Count(in.Recovered), quiet,
			LettersURL("state:quiet"+since, "", ""),
		},
		{
			"Discarded, " + shortRange(p.Range), "trash", "", Count(in.Discarded), discarded,
			LettersURL("state:discarded,purged"+since, "", ""),
		},
	}
	for _, t := range all {
		if t.Value == "0" {
			none = append(none, t)
		} else {
			some = append(some, t)
		}
	}
	return some, none
}

func (p OverviewPage) rangeWord() string {
	return "the " + strings.ToLower(Range{Preset: p.Range}.name())
}

// shortRange formats a preset range, for example "24 h" for 24h.
func shortRange(r string) string {
	if r == "" {
		return ""
	}
	return r[:len(r)-1] + " " + r[len(r)-1:]
}

// OverviewURL returns the URL of the overview for a time range.
func OverviewURL(r string) string { return "/?range=" + r }

// judgement is the sentence on the overview that sums up the situation, with its icon and its
// button.
type judgement struct {
	tone, icon, title string
	text              []Span
	link, word        string // the link and the label of the button, or ""
}

// verdict describes the situation in words. Failures that are happening now come before letters
// that wait for a person. The button of the result leads to exactly the letters or groups that the
// sentence counts.
func (p OverviewPage) verdict() judgement {
	j := p.standingVerdict()
	j.text = append(append(j.text, p.asideSentence(j)...), p.retrySentence()...)
	for _, b := range p.Brokers {
		if !b.Connected {
			j.tone, j.icon = "bad", "stop"
			when := " since it was last connected"
			if !b.Reached {
				when = ""
			}
			j.text = append(j.text, words(" It is not known what has died on broker "+line(b.Name, 60)+when+"."))
			if j.title == nothingNeeded {
				j.title = "Nothing that is stored needs a person."
			}
		}
	}
	return j
}

const (
	nothingNeeded = "Nothing needs a person."
	aside         = " in groups that are snoozed or resolved."
)

// asideQuery selects dead and held letters whose groups are snoozed or resolved.
const asideQuery = "state:dead,held status:snoozed,resolved"

// asideSentence returns a sentence with the number of letters that the summary does not count,
// because their groups are snoozed or resolved.
func (p OverviewPage) asideSentence(j judgement) []Span {
	if p.Aside == 0 || j.link == LettersURL(asideQuery, "", "") {
		return nil
	}
	return []Span{
		{Text: " "},
		{Text: Number(p.Aside, "dead or held letter", "dead or held letters"), Link: LettersURL(asideQuery, "", "")},
		words(plural(p.Aside, " is", " are") + aside),
	}
}

func (p OverviewPage) standingVerdict() judgement {
	failing, quiet := p.Standing.Failing, p.Standing.Quiet
	switch {
	case failing.Groups > 0 && p.Worst != nil:
		return p.failingVerdict()
	case p.pagingProblem() != nil:
		worst := *p.pagingProblem()
		return judgement{"bad", "stop", line(worst.Title, 200), explanation(worst), "", ""}
	case quiet.Letters > 0:
		return judgement{
			"", "warn", "Nothing has failed since " + p.quietSince() + ".", p.toRequeue(),
			LettersURL("state:dead,held status:"+deadletter.StatusNotFailing, "", ""),
			"Open the " + LetterCount(quiet.Letters),
		}
	case p.HeldBack:
		return judgement{
			"", "warn", "Almost all retries come back. No letter is dead yet.", nil, "/queues",
			"Open the queues",
		}
	case p.Held > 0 && p.Aside < p.Held+p.Dead:
		return judgement{
			"", "pause", LetterCount(p.Held) + plural(p.Held, " is", " are") + " held. Nothing is failing.",
			[]Span{{Text: "Each says why it was stopped."}},
			LettersURL("state:held", "", ""), "Open the " + LetterCount(p.Held),
		}
	case p.Aside > 0:
		return judgement{
			"good", "check", nothingNeeded,
			[]Span{words(Number(p.Aside, "dead or held letter is", "dead or held letters are") + aside)},
			LettersURL(asideQuery, "", ""), "Open the " + LetterCount(p.Aside),
		}
	case p.InRetry.Letters > 0:
		return judgement{
			"good", "check", "Nothing needs a person yet.", nil, retryURL(), "Open the " + LetterCount(p.InRetry.Letters),
		}
	}
	return judgement{
		"good", "check", nothingNeeded, []Span{{Text: "No letter is dead, and none waits for a retry."}}, "", "",
	}
}

// failingVerdict describes the situation when groups are failing.
func (p OverviewPage) failingVerdict() judgement {
	groups := p.Standing.Failing.Groups
	j := judgement{
		"bad", "stop", "", p.worstGroupSentences(),
		TriageURL(TriageInbox, "status:"+deadletter.StatusFailing, ""),
		"Open the " + Number(groups, "group", "groups"),
	}
	switch {
	case p.Fix != nil: // it is too early to say that the groups have stopped failing
		j.tone, j.icon = "warn", "clock"
		j.title = "Nothing has died since " + p.quietSince() + ", " + Ago(p.Now, p.Fix.At) + "."
	case groups > 1:
		j.title = Count(groups) + " groups are failing; the worst is in " + queueName(p.Worst.Queue) + "."
	default:
		rest := " No other group is failing."
		if p.Standing.Quiet.Groups == 0 {
			rest = " Nothing else needs a person."
		}
		j.title = queueName(p.Worst.Queue) + " is failing." + rest
		j.link, j.word = GroupURL(p.Worst.ID), "Open group "+p.Worst.ID.String()
	}
	return j
}

// quietSince returns a phrase that says since when no letter has died. If a deploy ended the
// failures, the phrase names the deploy and its time. Otherwise it is the time of the last death.
func (p OverviewPage) quietSince() string {
	if p.Fix == nil {
		return hourMinute(p.Now, p.Standing.LastAt)
	}
	return deployName(*p.Fix) + " went live at " + hourMinute(p.Now, p.Fix.At)
}

// deployName returns the service and the version of a deploy.
func deployName(d deadletter.Deploy) string {
	return strings.TrimSpace(line(d.Service, 60) + " " + line(d.Version, 60))
}

// toRequeue returns a sentence for the case that nothing is failing, but letters wait for a
// decision of a person. It says when the last letter died, and how many letters wait.
func (p OverviewPage) toRequeue() []Span {
	quiet := p.Standing.Quiet
	return []Span{
		{Text: "The last letter died at "},
		clockSpan(p.Now, p.Standing.LastAt),
		words(". " + LetterCount(quiet.Letters) + " of " + Number(quiet.Groups, "group", "groups") +
			plural(quiet.Letters, " waits", " wait") + " to be requeued or discarded."),
	}
}

// pagingProblem returns the first problem with the severity "page", or nil if there is none. The
// overview says that nothing needs a person only if there is no such problem.
func (p OverviewPage) pagingProblem() *deadletter.Problem {
	for i := range p.Problems {
		if p.Problems[i].Severity == deadletter.SeverityPage {
			return &p.Problems[i]
		}
	}
	return nil
}

// retrySentence returns the sentence about the letters in retry. If there are letters that need a
// person, it is short.
func (p OverviewPage) retrySentence() []Span {
	if p.InRetry.Letters == 0 {
		return nil
	}
	if p.Dead+p.Held > 0 {
		return []Span{words(" "), {Text: p.InRetry.count(), Link: retryURL()}, words(".")}
	}
	return append([]Span{words(" ")}, p.InRetry.sentence(p.Now)...)
}

// overdueToo returns the number of overdue letters of a group, as the end of a sentence about its
// dead letters. It returns "" if there are none. An overdue letter is one whose retries should have
// ended by now.
func overdueToo(g deadletter.GroupRow) string {
	if g.Overdue == 0 {
		return ""
	}
	return ", " + Count(g.Overdue) + " overdue"
}

// worstGroupSentences describes the worst group: which letters fail, since when, and after which
// deploy. If a deploy may have fixed the group, the text begins with that deploy.
func (p OverviewPage) worstGroupSentences() []Span {
	g := p.Worst
	text := append(p.fixedSentence(), Span{Text: LetterCount(g.Needs()) + " of " + g.ID.String() + ", from "},
		Span{Text: queueName(g.Queue), Code: true},
		words(plural(g.Needs(), ", needs", ", need")+" a person"+overdueToo(g.GroupRow)+`: "`+
			line(g.Title, 160)+`". `),
	)
	after := ", after "
	if g.Back.Since.IsZero() {
		text = append(text, Span{Text: "First seen "}, clockSpan(p.Now, g.FirstAt))
	} else {
		text, after = append(text, backWords(p.Now, g.GroupRow)...), ", and after "
	}
	if g.Suspect != nil {
		text = append(text, Span{Text: after}, Span{Text: deployName(*g.Suspect), Code: true})
	}
	return append(
		text, Span{Text: "; last death "}, clockSpan(p.Now, g.LastAt), Span{Text: ", " + Ago(p.Now, g.LastAt) + "."},
	)
}

// fixedSentence returns a sentence with the number of groups that were failing before a deploy. No
// letter has died in these groups since the deploy. The sentence adds that it is too early to say
// that they have stopped.
func (p OverviewPage) fixedSentence() []Span {
	if p.Fix == nil {
		return nil
	}
	n := p.Standing.Failing.Groups
	return []Span{{
		Text: Number(n, "group was", "groups were") + " failing until then; it is too early to say that " +
			plural(n, "it has", "they have") + " stopped. ",
	}}
}

// lateRetries is the delay from which the health panel reports a retry as late. The limits on the
// sending rate may delay a retry by some seconds without a fault.
const lateRetries = 30 * time.Second

// fact is one line of the health panel.
type fact struct {
	Name, Tone string
	Text       []Span
}

// health returns one line for each thing that dlo depends on, with the known state of that thing.
func (p OverviewPage) health() []fact {
	var out []fact
	add := func(name, tone string, text ...Span) { out = append(out, fact{name, tone, text}) }
	say := func(name, tone, text string) { add(name, tone, Span{Text: text}) }
	for _, b := range p.Brokers {
		name := "Broker"
		if len(p.Brokers) > 1 {
			name += " " + line(b.Name, 40)
		}
		if b.Connected {
			say(name, "good", product(b)+", connected "+When(p.Now, b.Since))
		} else {
			say(name, "bad", "not connected: "+line(b.Reason, 120))
		}
		for _, i := range b.Inboxes[:min(len(b.Inboxes), 20)] {
			inbox := Span{Text: line(i.Queue, 80), Code: true}
			switch {
			case !b.Reached:
				add("Inbox", "bad", inbox, Span{Text: " was never read"})
			case !b.Connected:
				add("Inbox", "bad", inbox, Span{Text: " waits for the broker"})
			case p.isUnread(i.Queue):
				add("Inbox", "bad", inbox, Span{Text: " is not read"})
			default:
				add("Inbox", "good", Span{Text: "reading "}, inbox)
			}
		}
	}
	if len(p.Brokers) == 0 {
		say("Broker", "", "unknown")
	}
	if p.Lag > lateRetries {
		say("Retries", "warn", "the oldest that is due is "+Duration(p.Lag)+" late")
	} else {
		say("Retries", "good", "on time")
	}
	if p.Disk != "" {
		say("Disk", "good", line(p.Disk, 120))
	}
	if b := p.Backup; b != nil {
		tone, text := "good", "made "+When(p.Now, b.At)+", "+LetterCount(b.Total())
		switch r := b.Rehearsed; {
		case r == nil:
			text += ", not rehearsed yet"
		case r.Problem != "":
			tone, text = "bad", text+"; rehearsed "+When(p.Now, r.At)+": "+line(r.Problem, 120)
		case r.Errors > 0:
			tone, text = "bad", text+"; rehearsed "+When(p.Now, r.At)+", "+Number(r.Errors, "error", "errors")
		default:
			text += "; rehearsed " + When(p.Now, r.At) + ", 0 errors"
		}
		say("Backup", tone, text)
	}
	if p.Unindexed > 0 {
		say("Search", "warn", LetterCount(p.Unindexed)+" not in the text index yet")
	} else {
		say("Search", "good", "search index up to date")
	}
	if !p.NoticeAt.IsZero() {
		say("Notices", "good", "last one sent "+When(p.Now, p.NoticeAt)+" to "+line(p.NoticeTo, 60))
	}
	switch {
	case p.Told == nil:
	case len(p.Channels) == 0:
		say("Pager", "", "nobody is notified: no channel is configured")
	case len(p.Told) == 0:
		add(
			"Pager", "warn",
			Span{Text: "nobody is notified when dlo has a problem: no rule of severity page has a channel, and "},
			Span{Text: "problems.notify", Code: true},
			Span{Text: " names none"},
		)
	default:
		say("Pager", "good", "dlo's own problems go to "+line(strings.Join(p.Told, ", "), 120))
	}
	return out
}

// isUnread reports whether a problem says that dlo does not read the given inbox.
func (p OverviewPage) isUnread(inbox string) bool {
	return slices.ContainsFunc(p.Problems, func(one deadletter.Problem) bool {
		return one.Kind == deadletter.ProblemInboxNotRead && one.Inbox == inbox
	})
}

// toned returns the number of lines of the health panel with a tone. A line with the tone "warn"
// does not prevent anything from working.
func (p OverviewPage) toned(tone string) (n int) {
	for _, f := range p.health() {
		if f.Tone == tone {
			n++
		}
	}
	return n
}

func (p OverviewPage) healthy() bool { return len(p.Problems) == 0 && p.toned("bad") == 0 }

// deploySentence returns a sentence with the newest deploys of the chart.
func deploySentence(list []deadletter.Deploy) string {
	const named = 3
	var names []string
	for _, d := range list[:min(len(list), named)] {
		names = append(names, deployName(d))
	}
	text := "Deployed: " + strings.Join(names, ", ")
	if more := len(list) - named; more > 0 {
		text += " and " + Count(more) + " more"
	}
	return text
}

// isUrgent reports whether a group has the severity "page". Such a group is shown in red.
func isUrgent(g deadletter.GroupRow) bool { return g.Severity == deadletter.SeverityPage }

// testedWords returns what came of the last test of a channel.
func testedWords(c deadletter.Channel, now time.Time) string {
	switch {
	case c.TestedAt.IsZero():
		return "not tested since dlo started"
	case c.Accepted:
		return "test accepted " + When(now, c.TestedAt) + ": " + line(c.Answer, 200)
	}
	return "test failed " + When(now, c.TestedAt) + ": " + line(c.Answer, 200)
}
