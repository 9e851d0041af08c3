package web_test

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

var copiedText = regexp.MustCompile(`(?s)<textarea[^>]* data-copied>\n?(.*?)</textarea>`)

// copied returns the text that a page offers for copying.
func copied(t *testing.T, a answer) string {
	t.Helper()
	m := copiedText.FindStringSubmatch(a.text)
	if m == nil {
		t.Fatalf("no text: %.1500s", a.text)
	}
	return html.UnescapeString(m[1])
}

func TestALetterIsCopied(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := string(h.receive("sms", 1, `{"it's": "x"}`)[0])
	page := h.get("/letters/"+id+"?q=state:dead").want(t, 200, `href="/letters/`+id+`/copy?as=curl&amp;q=state%3Adead"`)
	if strings.Contains(page.text, "amq.default") {
		t.Error("the page of a letter carries its commands")
	}
	var shown, given struct {
		ID      string
		Headers map[string]any
		Body    []byte
	}
	h.get("/api/v1/letters/"+id).json(t, &given)
	if err := json.Unmarshal([]byte(copied(t, h.get("/letters/"+id+"/copy").want(t, 200))), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.ID != id || string(shown.Body) != string(given.Body) || len(shown.Headers) != len(given.Headers) {
		t.Errorf("%+v, the API gives %+v", shown, given)
	}
	curl := copied(t, h.get("/letters/"+id+"/copy?as=curl").want(t, 200))
	for _, want := range []string{
		"curl --user USER", `"routing_key":"sms"`, `"payload":"eyJpdCdzIjogIngifQ=="`, `"tries":3`, `"delivery_mode":2`,
		`"app_id":"shop"`, "'http://HOST:15672/api/exchanges/%2F/amq.default/publish'",
	} {
		if !strings.Contains(curl, want) {
			t.Errorf("no %s in %s", want, curl)
		}
	}
	if strings.Contains(curl, "x-death") {
		t.Error("the command sends what the broker wrote")
	}
	if admin := copied(
		t, h.get("/letters/"+id+"/copy?as=rabbitmqadmin").want(t, 200, "Python script"),
	); !strings.Contains(admin, "'routing_key=sms'") {
		t.Error(admin)
	}
	large := string(h.receive("sms", 1, strings.Repeat("x", 60_000))[0])
	if a := h.get("/letters/"+large+"/copy?as=curl").want(
		t, 200, "too large for a command", "Download the body",
	); copiedText.MatchString(a.text) {
		t.Error("a command of a large body")
	}
}

// TestWhatIsMaskedIsInNoCommand requests a command that publishes a copy of a letter. The letter
// has masked values. The page must show the command only if the principal has the right to reveal
// and asks for it. The audit must record each command that is shown.
func TestWhatIsMaskedIsInNoCommand(t *testing.T) {
	t.Parallel()
	h, letters, _ := maskedHouse(t)
	for _, name := range []string{"field", "redacted", "json", "pattern", "header", "unread", "type"} {
		for _, form := range []string{"curl", "rabbitmqadmin"} {
			path := "/letters/" + letters[name] + "/copy?as=" + form
			if a := h.get(path).want(t, 200, "has masked values"); copiedText.MatchString(a.text) || betrayed(a.text) {
				t.Errorf("%s as %s: %s", name, form, a.text)
			}
			if text := copied(t, h.get(path+"&reveal=1").want(t, 200)); !betrayed(text) {
				t.Errorf("%s as %s: %s", name, form, text)
			}
		}
	}
	if a := h.get("/letters/"+letters["json"]+"/copy").want(t, 200, "a masked body is null"); betrayed(a.text) {
		t.Error(a.text)
	}
	h.get("/letters/"+letters["json"]+"/copy?reveal=1").want(t, 200, "kanarie")
	h.get("/letters/"+letters["json"]+"/copy?reveal=2").want(t, 400)
	audit := h.get("/api/v1/audit?kind=revealed&limit=500").want(
		t, 200, "the whole letter, as curl", "the whole letter, as rabbitmqadmin",
	)
	if betrayed(audit.text) {
		t.Error(audit.text)
	}
	stranger, letters, _ := maskedHouse(t, deadletter.Principal{Name: "ann"})
	stranger.get("/letters/"+letters["json"]+"/copy?as=curl").want(t, 403)
	stranger.get("/letters/"+letters["json"]+"/copy?as=curl&reveal=1").want(t, 403)
}

// TestCopyingInTheBrowser checks that the menu copies at once. If the copy needs an explanation,
// the menu must open the page for copying instead. Without JavaScript, it must always open that
// page.
func TestCopyingInTheBrowser(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, address := visit(t)
	id := string(h.receive("sms", 1, "x")[0])
	h.headers = deadletter.Table{"blob": []byte{1}}
	odd := string(h.receive("sms", 1, "x")[0])
	const menu = `document.querySelector('[data-copies] summary').click(); `
	tab.Open(address + "/letters/" + id)
	tab.Act(
		`navigator.clipboard.writeText = async t => { window.copied = t }; ` + menu +
			`document.querySelectorAll('[data-copy-from]')[1].click()`,
	)
	eventually(
		t, tab,
		`window.copied?.startsWith('curl --user USER') && document.querySelector('.toast')?.innerText == 'Copied as curl' && !document.querySelector('[data-copies]').open`,
	)
	tab.Act(`document.querySelectorAll('[data-copy-from]')[0].click()`)
	eventually(t, tab, `window.copied?.startsWith('{') && JSON.parse(window.copied).id == '`+id+`'`)
	tab.Open(address + "/letters/" + odd)
	tab.Act(menu + `document.querySelectorAll('[data-copy-from]')[1].click()`)
	eventually(
		t, tab,
		`location.pathname == '/letters/`+odd+
			`/copy' && document.querySelector('main').innerText.includes('header blob: the management API has no such type: bytes')`,
	)
	tab.Act(
		`navigator.clipboard.writeText = async t => { window.copied = t }; document.querySelector('main [data-copy]').click()`,
	)
	eventually(t, tab, `window.copied?.startsWith('curl --user USER')`)
	checkConsole(t, tab)
	for _, width := range []int64{1440, 390} {
		tab.Viewport(width, 900)
		for _, fault := range tab.Axe() {
			t.Errorf("%d px: %s", width, fault)
		}
	}
	tab.Viewport(1440, 900)
	tab.JavaScript(false)
	tab.Open(address + "/letters/" + id + "?q=" + url.QueryEscape("state:dead"))
	tab.Act(menu + `document.querySelectorAll('[data-copy-from]')[2].click()`)
	eventually(
		t, tab,
		`document.querySelector('h1').innerText == 'Copy as rabbitmqadmin' && document.querySelector('textarea[data-copied]').value.startsWith('rabbitmqadmin --host HOST')`,
	)
}

// TestRequeueIsInSightOnAPhone checks that the header of a letter's page fits on a phone without
// scrolling sideways.
func TestRequeueIsInSightOnAPhone(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, address := visit(t)
	id := string(h.receive("sms", 1, "x")[0])
	tab.Viewport(390, 844)
	tab.Open(address + "/letters/" + id + "?q=state:dead")
	const seen = `(() => { const b = document.querySelector('main button[data-verb="requeue"]').getBoundingClientRect(), row = document.querySelector('.head > .row'); return b.left >= 0 && b.right <= innerWidth && b.bottom <= innerHeight && row.scrollWidth <= row.clientWidth + 1; })()`
	if !tab.Is(seen) {
		t.Error("Requeue is out of sight")
	}
	tab.Act(`document.querySelector('[data-copies] summary').click()`)
	eventually(
		t, tab,
		`(() => { const b = document.querySelector('[data-copies] .menu-list').getBoundingClientRect(); return b.left >= 0 && b.right <= innerWidth && b.width > 100; })()`,
	)
	tab.Do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	checkConsole(t, tab)
}
