package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestTheStoryInABrowser does what docs/quickstart.md tells people to do in the demo, with the
// mouse: look at what fails, requeue too early, deploy the fix, requeue, edit, discard. If
// DLO_PICTURES names a folder, it writes the pictures of README and docs into this folder, and the
// frames of the moving picture into its subfolder frames. `make pictures` sets DLO_PICTURES.
func TestTheStoryInABrowser(t *testing.T) {
	testenv.Full(t)
	if testing.Short() {
		t.Skip("short: it takes a broker, a browser and the whole demo")
	}
	t.Parallel()
	d := startDemo(t)
	s := &visitor{t: t, tab: testenv.Browser(t), folder: os.Getenv("DLO_PICTURES")}
	s.tab.Viewport(windowWidth, windowHeight)
	d.eventually("60 letters are dead", func() bool { return d.count("state:dead") >= 60 })

	s.tab.Open(d.url)
	s.reads("groups are failing; the worst is in email-queue")
	s.look(1800, "")
	s.click("nav a", "Triage")
	s.reads("Page now")
	s.look(1300, "triage")
	s.click("[data-row] a", "there is no template welcome_v3")
	s.reads("It began right after notifications 1.4.0 went live")
	s.look(1200, "")
	s.tab.Open(d.url + "/letters")
	s.click("[data-row] .rowlink", "EmailRequested")
	s.reads("in the error text")
	s.look(2000, "letter")

	s.click("nav a", "Letters")
	s.click("[name=toggle][value='queue:sms-queue']", "")
	s.reads("queue:sms-queue")
	s.click("[data-pick-all]", "")
	s.click(".bulkbar [value=requeue]", "")
	s.reads("to the tail")
	s.look(1200, "")
	s.click("dialog[open] [data-confirm-btn]", "")
	s.until(`location.pathname == '/operations/O-1'`)
	s.look(1000, "")
	s.reads("stopped automatically")
	s.look(1000, "")
	s.click("button", "Cancel the rest")
	s.reads("Cancelled")

	d.fix()
	s.tab.Open(d.url)
	s.reads("Nothing has died since notifications 1.4.1 went live")
	s.look(1200, "")
	d.eventually(
		"what was on its way has passed", func() bool { return d.count("state:received,scheduled,publishing") == 0 },
	)
	s.tab.Open(d.url + "/letters")
	s.click("[name=exclude][value='type:none']", "")
	s.reads("-type:none")
	s.click("[data-pick-all]", "")
	s.click("[data-scope-all]", "Select all")
	s.click(".bulkbar [value=requeue]", "")
	s.click("dialog[open] summary", "Options")
	s.types("[name=wait]", "10s")
	s.look(1200, "")
	s.click("dialog[open] [data-confirm-btn]", "")
	s.until(`location.pathname == '/operations/O-2'`)
	s.reads("1 of 10 came back")
	s.look(1200, "")
	s.click("button", "Resume anyway")
	s.reads("quiet for 30 s")
	s.look(3000, "operation")

	s.tab.Open(d.url + "/letters?q=state:dead+type:acme.notify.v1.SmsRequested")
	s.click("[data-row] .rowlink", "SmsRequested")
	s.click("main a", "Edit and requeue")
	s.until(find("#edit-text", ""))
	text := testenv.Run(s.tab, chromedp.Evaluate[string](`document.querySelector('#edit-text').value`))
	s.types("#edit-text", regexp.MustCompile(`"text": "[^"]*"`).ReplaceAllString(text, `"text": "Welcome aboard!"`))
	s.click("button", "Check")
	s.reads("Encoded again")
	s.types("[name=reason]", "longer than the provider takes")
	s.look(1000, "")
	s.click("main button", "Requeue edited copy")
	s.reads("quiet for 30 s")
	if n := d.count("state:dead"); n != 3 {
		t.Fatalf("%d letters are dead, want the three without a type", n)
	}
	s.tab.Open(d.url + "/letters")
	s.click("[data-pick-all]", "")
	s.click(".bulkbar [value=discard]", "")
	s.click("dialog[open] [data-confirm-btn]", "")
	s.until(`location.pathname == '/operations/O-4'`)
	s.click("nav a", "Overview")
	s.reads("Nothing needs a person")
	s.look(1200, "")
	for _, m := range append(s.tab.Console(), s.tab.CSPReports()...) {
		t.Error(m)
	}
}

// The size of the window in CSS pixels.
const windowWidth, windowHeight = 1280, 800

// visitor is a person who follows the story of the demo in a browser.
type visitor struct {
	t      *testing.T
	tab    *testenv.Tab
	folder string // where the pictures go, or ""
	frames int
}

// find is a JavaScript expression: the first element that matches a selector, is on the page to be
// seen, and contains the text.
func find(selector, text string) string {
	return fmt.Sprintf(
		`[...document.querySelectorAll(%q)].find(x => x.checkVisibility() && x.innerText.toLowerCase().includes(%q))`,
		selector, strings.ToLower(text),
	)
}

// reads waits until the page, or the open dialog, contains a text.
func (s *visitor) reads(text string) {
	s.t.Helper()
	s.until(find("dialog[open], main", text))
}

func (s *visitor) until(expression string) {
	s.t.Helper()
	s.tab.Until(2*time.Minute, `document.readyState == 'complete' && `+expression)
}

// click waits for an element, and presses the mouse button in the middle of it. The frame before
// shows where.
func (s *visitor) click(selector, text string) {
	s.t.Helper()
	at := find(selector, text)
	s.until(at)
	place := testenv.Run(s.tab, chromedp.Evaluate[[]float64](`(x => {
		x.scrollIntoViewIfNeeded();
		const b = x.getBoundingClientRect();
		return [b.x + b.width / 2, b.y + b.height / 2];
	})(`+at+`)`))
	if s.folder != "" {
		s.tab.Act(fmt.Sprintf(`(x => {
			x.id = 'mouse';
			x.style.cssText = 'position:fixed;z-index:99;width:28px;height:28px;border-radius:50%%;pointer-events:none;' +
				'background:rgb(220 40 40 / .35);border:2px solid rgb(220 40 40 / .8);left:%fpx;top:%fpx';
			(document.querySelector('dialog[open]') ?? document.body).append(x);
		})(document.createElement('div'))`, place[0]-14, place[1]-14))
		s.look(400, "")
		s.tab.Act(`document.querySelector('#mouse')?.remove()`)
	}
	s.tab.Do(chromedp.MouseClickXY(place[0], place[1]))
}

// types replaces the content of a field.
func (s *visitor) types(selector, text string) {
	s.t.Helper()
	s.until(find(selector, ""))
	s.tab.Act(fmt.Sprintf(`(x => { x.value = %q; x.dispatchEvent(new Event('input', {bubbles: true})) })(%s)`,
		text, find(selector, "")))
}

// look adds what the window shows to the moving picture, for some milliseconds. If the name is not
// empty, it is also a picture of its own.
func (s *visitor) look(milliseconds int, name string) {
	s.t.Helper()
	if s.folder == "" {
		return
	}
	s.frames++
	frame := filepath.Join(s.folder, "frames", fmt.Sprintf("%03d", s.frames))
	files := map[string][]byte{
		frame + ".png": s.picture(0.7), frame + ".txt": fmt.Appendf(nil, "delay=%d/1000\n", milliseconds),
	}
	if name != "" {
		files[filepath.Join(s.folder, name+".png")] = s.picture(1)
	}
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
}

// picture returns what the window shows, as a PNG whose pixels are CSS pixels times the scale.
func (s *visitor) picture(scale float64) []byte {
	s.t.Helper()
	at := testenv.Run(s.tab, chromedp.Evaluate[[]float64]("[scrollX, scrollY]"))
	return testenv.Run(s.tab, func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		r, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Clip: &page.Viewport{X: at[0], Y: at[1], Width: windowWidth, Height: windowHeight, Scale: scale},
		})
		return r.Data, err
	})
}
