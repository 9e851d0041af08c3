package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

func TestTheLetterPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 3, `{"to": "+44 7700", "answer": "410 Gone"}`)
	path := "/letters/" + string(ids[1])
	page := h.get(path+"?q=state:dead").want(
		t, 200, ids[1].Short(), "endpoint answered 410 Gone", "x-error-message", "Facts", `rel="next"`, `rel="prev"`,
		"in the error text", "410 Gone",
	)
	if page.Header.Get("Cache-Control") != "no-store" {
		t.Error("a page with a body may be cached")
	}
	h.get(path+"?tab=json").want(t, 200, "&#34;answer&#34;")
	h.get(path+"?tab=raw").want(t, 200, "How it was read", "7b 22 74 6f")
	h.get(path+"?tab=headers").want(t, 200, "tries", "int32", "header, set by the broker", "app-<wbr>id")
	h.get(path+"?tab=timeline").want(t, 200, "Rejected by a consumer of sms", "Received")
	h.get(path+"?tab=history").want(t, 200, "History")
	h.get(path+"?tab=nonsense&q=wrong:x").want(t, 200, "Decoded")

	for _, id := range []string{
		"-1", "9223372036854775808", "..%2f..%2fetc", "019a9f3e-5b1e-7ac0-9d3f-44e279c3aeae", "%00",
		strings.ToUpper(string(ids[1]))[:35],
	} {
		h.get("/letters/"+id).want(t, 404, "Not found", "There is no letter ")
	}
}

func TestTheBodyIsAFileThatNoBrowserShows(t *testing.T) {
	t.Parallel()
	h := open(t)
	body := "<script>alert(1)</script>"
	id := h.receive("sms", 1, body)[0]
	for _, path := range []string{"/letters/", "/api/v1/letters/"} {
		a := h.get(path+string(id)+"/body").want(t, 200)
		if a.text != body {
			t.Errorf("body %q", a.text)
		}
		for header, want := range map[string]string{
			"Content-Type":           "application/octet-stream",
			"Content-Disposition":    `attachment; filename="letter-` + id.Short() + `.bin"`,
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		} {
			if got := a.Header.Get(header); got != want {
				t.Errorf("%s: %q", header, got)
			}
		}
		if !strings.Contains(a.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Error("no sandbox")
		}
	}
}

// TestALetterSaysWhereItStandsInItsList checks that the page of a letter shows a position such as
// "2 of 3", or says that the letter has left the list. If the letter was not opened from a list, it
// must show neither.
func TestALetterSaysWhereItStandsInItsList(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 3, "x")
	h.receive("mail", 2, "x")
	for i, id := range ids {
		h.get("/letters/"+string(id)+"?q=queue:sms+state:dead").want(t, 200, fmt.Sprintf(">%d of 3<", 3-i))
		h.get("/letters/"+string(id)+"?q=queue:sms+state:dead+sort:oldest").want(t, 200, fmt.Sprintf(">%d of 3<", i+1))
	}
	h.get("/letters/"+string(ids[0])+"?q=queue:mail").want(t, 200, "not in this list now")
	if plain := h.get("/letters/"+string(ids[0])).want(t, 200); strings.Contains(plain.text, `data-testid="position"`) {
		t.Error("a letter that was opened from no list stands in one")
	}
}

// TestPurgeIsNotBesideDiscard checks that irreversible actions are in a menu, and not among the
// visible buttons. This must be so on the page of a letter and in a list of letters, even without
// JavaScript.
func TestPurgeIsNotBesideDiscard(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	id := h.receive("sms", 2, "x")[0]
	for _, path := range []string{"/letters", "/letters/" + string(id)} {
		tab.Open(url + path)
		if path == "/letters" {
			tab.Do(chromedp.KeyEvent("j"))
			tab.Do(chromedp.KeyEvent("x"))
		}
		for verb, want := range map[string]bool{"requeue": true, "discard": true, "hold": false, "purge": false} {
			if got := tab.Is(
				`document.querySelector('main button[data-verb="` + verb + `"]').checkVisibility()`,
			); got != want {
				t.Errorf("%s: %s is seen: %v, want %v", path, verb, got, want)
			}
		}
		tab.Act(`document.querySelector('[data-more] summary').click()`)
		eventually(t, tab, `document.querySelector('main button[data-verb="purge"]').checkVisibility()`)
		tab.Act(`document.querySelector('main button[data-verb="purge"]').click()`)
		eventually(t, tab, `document.querySelector('dialog[open]')?.innerText.includes('Purge')`)
	}
	tab.Open(url + "/letters/" + string(id))
	tab.Do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	eventually(t, tab, `document.activeElement?.id === 'jump-in'`)
	tab.Do(chromedp.KeyEvent("purge"))
	eventually(t, tab, `document.querySelector('#jump-list')?.innerText.includes('Purge')`)
	checkConsole(t, tab)
}

// TestTheEditorHelpsWhileAPersonTypes checks that the key i leads into the text, that the length of
// the text follows each key, and that the text is checked without a click. The menus at the right
// of the top bar must have the same place as on pages with live updates.
func TestTheEditorHelpsWhileAPersonTypes(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, url := visit(t)
	id := string(h.receive("sms", 1, `{"a": "é"}`)[0])
	const help = `document.querySelector('.topbar .menu').getBoundingClientRect().right`
	tab.Open(url + "/letters/" + id)
	eventually(t, tab, `!document.querySelector('[data-zone]').hidden`)
	place := js[float64](tab, help)
	tab.Do(chromedp.KeyEvent("i"))
	eventually(t, tab, `location.pathname.endsWith('/edit') && document.activeElement.id == 'edit-text'`)
	eventually(t, tab, fmt.Sprint(help, " == ", place)) // the scripts of the page show the button beside it
	size := func(want string) {
		t.Helper()
		eventually(t, tab, `document.querySelector('#edit-text-size').innerText == '`+want+`'`)
	}
	size("Characters: 14. Bytes: 15.")
	tab.Act(`document.activeElement.setSelectionRange(5, 6)`) // the name of the field
	size("Selected characters: 1. Bytes: 1.")
	tab.Do(chromedp.KeyEvent("bc"))
	size("Characters: 15. Bytes: 16.")
	eventually(t, tab, `document.querySelector('#edit-checks').innerText.includes('Valid JSON')`)
	checkConsole(t, tab)
}
