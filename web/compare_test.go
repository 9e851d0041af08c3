package web_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// outcomes compares two letters and returns the result for each field. The key of a result is the
// part of the letter that contains the field, for example "body", then a space, and then the path
// of the field.
func (h *house) outcomes(a, b string) map[string]string {
	h.t.Helper()
	var c api.Comparison
	h.get("/api/v1/letters/compare?a="+a+"&b="+b).want(h.t, 200).json(h.t, &c)
	list := map[string]string{}
	for _, f := range c.Fields {
		if (f.A == nil) != (f.Outcome == "only_b") || (f.B == nil) != (f.Outcome == "only_a") {
			h.t.Errorf("%+v", f)
		}
		list[f.Part+" "+f.Path] = f.Outcome
	}
	return list
}

func TestTwoLettersAreCompared(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.headers = deadletter.Table{"x-tenant": "a", "table": deadletter.Table{"n": int32(1)}, "tries": int32(3)}
	a := h.receive("sms", 1, `{"to": "x", "n": [1, 2], "same": true}`)[0]
	h.headers = deadletter.Table{
		"x-tenant": "b",
		"table":    deadletter.Table{"n": int64(1)},
		"tries":    int64(3),
		"more":     "x",
	}
	h.failure = "another error"
	b := h.receive("mail", 1, `{"to": "y", "n": [1], "same": true}`)[0]
	h.indexed()
	got := h.outcomes(string(a), b.Short())
	for path, want := range map[string]string{
		"fact error": "different", "fact queue": "different", "fact reason": "same", "property app-id": "same",
		"property message-id": "different", "header x-tenant": "different", "header table": "different",
		"header tries": "different", "header more": "only_b", "header x-error-message": "same", "body to": "different",
		"body n[0]": "same", "body n[1]": "only_a", "body same": "same",
	} {
		if got[path] != want {
			t.Errorf("%s: %q, want %q", path, got[path], want)
		}
	}
	if got["header x-death"] != "" {
		t.Error("what the broker wrote is compared")
	}
	h.get("/letters/compare?a="+a.Short()+"&b="+string(b)+"&q=state:dead").want(
		t, 200, "Compare letters", "n[1]", "not there", `href="/letters?q=state%3Adead"`, "3 (int32)", "3 (int64)",
	)
	h.get("/letters/compare").want(t, 200, `name="a"`, `name="b"`)
	h.get("/letters/compare?id="+string(a)+"&id="+string(b)+"&q=&return=%2Fletters").want(t, 200, "fields differ")
	h.get("/letters/compare?id="+string(a)).want(t, 400, "tick exactly two letters to compare them; 1 is ticked")
	for _, wrong := range []string{"00000000", "nonsense", "%00", "id:x", "a b"} {
		if s := h.get(
			"/letters/compare?a=" + string(a) + "&b=" + url.QueryEscape(wrong),
		).StatusCode; s != 404 && s != 400 {
			t.Errorf("%s: %d", wrong, s)
		}
	}
	h.get("/api/v1/letters/compare?a="+string(a)).want(t, 400, "a and b name the letters")
	h.get("/letters/"+string(b)+"?q=").want(
		t, 200, "/letters/compare?a="+string(a)+"&amp;b="+string(b), "With the older letter",
	)
}

// TestWhatIsMaskedIsComparedUnseen compares letters with masked values. A reader with the right to
// reveal must learn whether the values are equal, but nobody may see the values themselves.
func TestWhatIsMaskedIsComparedUnseen(t *testing.T) {
	t.Parallel()
	h, letters, _ := maskedHouse(t)
	for what, id := range letters {
		for _, c := range []struct{ path, want string }{
			{"body customer.email", "same"},
			{"body pin", "same"},
			{"body card.number", "same"},
			{"body note", "same"},
			{"header authorization", "same"},
			{"property message-id", "same"},
			{"header table", "same"},
		} {
			if got := h.outcomes(id, id)[c.path]; got != "" && got != c.want {
				t.Errorf("%s with itself, %s: %s", what, c.path, got)
			}
		}
	}
	if got := h.outcomes(letters["json"], letters["json"])["body card.number"]; got != "same" {
		t.Errorf("card.number: %q", got)
	}
	stranger, letters, _ := maskedHouse(t, deadletter.Principal{
		Name:   "ann",
		Grants: []deadletter.Grant{{Role: deadletter.RoleAdmin, Places: deadletter.Places{Queues: []string{"other"}}}},
	})
	stranger.get("/letters/compare?a="+letters["json"]+"&b="+letters["json"]).want(t, 404)
	stranger.get("/api/v1/letters/compare?a="+letters["json"]+"&b="+letters["json"]).want(t, 404)
}

// TestTwoTickedLettersAreCompared checks that the button for comparing appears when two letters are
// ticked. Without JavaScript, it must appear when any letter is ticked.
func TestTwoTickedLettersAreCompared(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	h, tab, address := visit(t)
	h.receive("sms", 3, `{"a": "`+strings.Repeat("long ", 100)+`"}`)
	h.receive("mail", 1, `{"a": 1}`)
	const seen = `!!document.querySelector('[data-two]')?.checkVisibility()`
	tab.Open(address + "/letters?q=state:dead")
	for i, want := range []bool{false, true, false} {
		tab.Act(`document.querySelectorAll('[data-pick]')[` + string(rune('0'+i)) + `].click()`)
		if tab.Is(seen) != want {
			t.Errorf("%d are ticked, and the button is seen: %v", i+1, !want)
		}
	}
	tab.Act(`document.querySelectorAll('[data-pick]')[1].click(); document.querySelector('[data-two]').click()`)
	eventually(
		t, tab,
		`location.pathname == '/letters/compare' && new URLSearchParams(location.search).get('q') == 'state:dead' && document.querySelectorAll('.compared').length >= 2`,
	)
	tab.Act(`document.querySelector('details.panel summary').click()`)
	eventually(
		t, tab,
		`document.querySelector('details.panel .compared').checkVisibility() && document.querySelector('details.panel').innerText.includes('app-id')`,
	)
	checkConsole(t, tab)
	for _, width := range []int64{1440, 390} {
		tab.Viewport(width, 900)
		if tab.Is(`document.documentElement.scrollWidth > innerWidth`) {
			t.Errorf("wider than %d px", width)
		}
		for _, fault := range tab.Axe() {
			t.Errorf("%d px: %s", width, fault)
		}
	}
	tab.Viewport(1440, 900)
	tab.Open(address + "/letters?q=state:dead")
	tab.Do(chromedp.KeyEvent("j"), chromedp.KeyEvent("x"), chromedp.KeyEvent("j"), chromedp.KeyEvent("x"))
	eventually(t, tab, seen)
	tab.JavaScript(false)
	tab.Open(address + "/letters?q=state:dead")
	tab.Act(
		`for (const i of [0, 1]) document.querySelectorAll('[data-pick]')[i].click(); document.querySelector('[data-two]').click()`,
	)
	eventually(
		t, tab,
		`location.pathname == '/letters/compare' && document.querySelector('h1').innerText == 'Compare letters' && document.querySelectorAll('.compared').length >= 2`,
	)
}
