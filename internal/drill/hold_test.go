package drill

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const overview = `<div class="banner bad" role="alert"><svg></svg><span class="grow"><b>Inbox a is not read.</b> It&#39;s gone</span></div>
<div class="verdict good" id="verdict" data-live="letters"><span class="good"></span><div class="grow"><p class="strong break">Nothing needs a person yet.</p></div></div>
<tr><td><a class="rowlink clamp" href="/groups/G-1" title="boom">boom &amp; bang</a> <span class="sub clip" title="G-1" data-queue="orders"><span>G-1</span> orders</span></td></tr>`

func TestOverviewIsRead(t *testing.T) {
	t.Parallel()
	p := readPage(overview)
	if p.verdict != "Nothing needs a person yet." || len(p.banners) != 1 || p.banners[0] != "Inbox a is not read." ||
		len(p.groups) != 1 || p.groups[0] != (group{"orders", "boom & bang"}) {
		t.Errorf("%+v", p)
	}
}

// TestAPageThatCallsForNobodyDoesNotCount checks how the drill judges an Overview that shows a
// problem but also says that nothing needs a person. If the problem has the severity "page", the
// drill must treat it as not reported.
func TestAPageThatCallsForNobodyDoesNotCount(t *testing.T) {
	t.Parallel()
	p, told := readPage(overview), problem{Title: "Inbox a is not read."}
	for severity, counts := range map[deadletter.Severity]bool{
		deadletter.SeverityPage: false, deadletter.SeverityNotify: true,
	} {
		if _, ok := (&sign{severity: severity}).findOnPage(p, told); ok != counts {
			t.Errorf("%s: %v", severity, ok)
		}
	}
	if _, ok := (&sign{severity: deadletter.SeverityNotify}).findOnPage(p, problem{}); ok {
		t.Error("a problem without a title is on no page")
	}
	if text, ok := (&sign{group: "orders"}).findOnPage(p, problem{}); !ok || text != "orders: boom & bang" {
		t.Errorf("%q", text)
	}
}

// TestAProblemIsFoundByAllThatIsWanted checks that findProblem compares kind, severity, broker,
// queue and each part of the text.
func TestAProblemIsFoundByAllThatIsWanted(t *testing.T) {
	t.Parallel()
	l := look{
		problems: []problem{
			{
				Kind: "rights", Severity: "page", Broker: "main", Inbox: "a", Title: "Too few.", Text: "write, read",
				Cure: "grant",
			},
		},
	}
	good := sign{
		kind:     "rights",
		severity: "page",
		broker:   "main",
		about:    "a",
		says:     "write",
		also:     []string{"read", "grant"},
	}
	if _, ok := good.findProblem(l); !ok {
		t.Error("it is there")
	}
	for name, change := range map[string]func(s *sign){
		"kind":     func(s *sign) { s.kind = "disk" },
		"severity": func(s *sign) { s.severity = "notify" },
		"broker":   func(s *sign) { s.broker = "other" },
		"about":    func(s *sign) { s.about = "b" },
		"says":     func(s *sign) { s.says = "configure" },
		"also":     func(s *sign) { s.also = []string{"configure"} },
	} {
		s := good
		change(&s)
		if _, ok := s.findProblem(l); ok {
			t.Error("it is not the one: " + name)
		}
	}
}

// TestTheReport checks the printed report of a drill that has a row of each kind.
func TestTheReport(t *testing.T) {
	t.Parallel()
	r := Report{Rows: []Row{
		{
			Name:   "a",
			Does:   "a is made",
			Page:   Seen{"A is\x1b wrong.", 2},
			Ready:  Seen{"200 a (page)", 2},
			Notice: Seen{"A", 27},
			Mended: Seen{"do this", 60},
			Pass:   true,
		},
		{Name: "b", Does: "b is made", Page: unseen, Ready: nothing, Notice: unseen, Mended: unseen, Why: "not told"},
		{Name: "c", Does: "c is made", Skipped: "not an administrator"},
	}}
	var out strings.Builder
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	const want = `PASS  a: a is made
      Overview    2 s  A is\x1b wrong.
      /readyz     2 s  200 a (page)
      notice     27 s  A
      mended     60 s  do this
FAIL  b: b is made
      not told
      Overview  never
      /readyz       -
      notice    never
      mended    never
SKIP  c: c is made. It is left out: not an administrator
3 failures: 1 passed, 1 failed, 1 left out
`
	if out.String() != want || r.Failed() != 1 || r.Skipped() != 1 ||
		r.Rows[1].missingPlaces() != "Overview, the pager" {
		t.Errorf("%s%d %d %s", out.String(), r.Failed(), r.Skipped(), r.Rows[1].missingPlaces())
	}
}
