package web_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestRulesAreTriedInABrowser covers a person who writes, corrects and tries rules, with and
// without JavaScript. The result must have a link to those letters for which the tried rules decide
// something else. Trying rules must change nothing.
func TestRulesAreTriedInABrowser(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	for _, scripts := range []bool{true, false} {
		t.Run("scripts "+strconv.FormatBool(scripts), func(t *testing.T) {
			h, tab, url := visit(t, withRetries)
			tab.JavaScript(scripts)
			h.receive("sms", 3, "x")
			h.receive("email", 2, "x")
			write := func(text string) {
				t.Helper()
				eventually(t, tab, "document.readyState == 'complete' && document.querySelector('#try-text')")
				tab.Act(
					"document.querySelector('#try-text').value = `" + text +
						"`; document.querySelector('[action=\"/rules/try\"] .btn-primary').click()",
				)
			}
			says := func(text string) {
				t.Helper()
				eventually(t, tab, "document.querySelector('main')?.innerText.includes(`"+text+"`)")
			}
			tab.Open(url + "/rules")
			eventually(
				t, tab,
				"document.querySelector('#try-text').value.startsWith('default:\\n  retry: {delays: [10s, 1m40s], jitter: 0.1}')",
			)
			if scripts {
				tab.Act(
					"navigator.clipboard.writeText = async t => { window.copied = t }; document.querySelector('[action=\"/rules/try\"] [data-copy]').click()",
				)
				eventually(t, tab, "window.copied == document.querySelector('#try-text').value")
			}
			write("\\n- name: sms\\n  mach: {queue: sms}\\n  retry: {delays: [5s, 30s]}\\n")
			says("Line 3, column 3: there is no key \"mach\" in rules")
			eventually(
				t, tab, "document.querySelector('#try-text').value.startsWith('\\n- name: sms\\n  mach: {queue: sms}')",
			)
			if scripts {
				eventually(
					t, tab,
					"document.activeElement.id == 'try-text' && document.activeElement.selectionStart == '\\n- name: sms\\n  '.length",
				)
				tab.Do(chromedp.KeyEvent(kb.Enter))
				eventually(t, tab, "document.querySelector('#try-text').value.startsWith('\\n- name: sms\\n  \\n  ')")
			}
			checkConsoleAfter400(t, tab)
			write("- name: sms\\n  match: {queue: sms}\\n  retry: {delays: [5s, 30s]}\\n")
			says("Retried: rule sms")
			says("5 s, 30 s, then dead: digest")
			says("The text has no default; the one in use applies.")
			tab.Act(
				"[...document.querySelectorAll('[data-testid=tried] td a')].find(a => a.getAttribute('aria-label') == 'Open 3 letters').click()",
			)
			eventually(
				t, tab,
				"location.pathname == '/letters' && document.querySelectorAll('[data-pick]').length == 3 && document.querySelector('main').innerText.includes('Newest 3 of 3')",
			)
			h.get("/api/v1/letters/count?q=state:dead").want(t, 200, `"count":5`)
			checkConsoleAfter400(t, tab)
		})
	}
}

// checkConsoleAfter400 fails the test if a page logged anything besides the status 400 of a
// rejected form, or if the content security policy blocked anything.
func checkConsoleAfter400(t *testing.T, tab *testenv.Tab) {
	t.Helper()
	for _, m := range tab.Console() {
		if !strings.Contains(m, "400 (Bad Request)") {
			t.Errorf("console: %s", m)
		}
	}
	for _, v := range tab.CSPReports() {
		t.Errorf("content security policy: %s", v)
	}
}

// TestTriedRulesAreAccessible checks that the page of results passes axe-core at both widths and in
// both colour themes. Nothing may be wider than the screen of a phone.
func TestTriedRulesAreAccessible(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	for name, text := range map[string]string{
		"tried":    `- name: sms\n  match: {queue: sms}\n  retry: {delays: [5s, 30s], jitter: 0.1}\n`,
		"mistaken": `- name: sms\n  mach: {}\n`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, tab, url := visit(t, withRetries)
			h.receive("sms", 3, "x")
			h.wait("email", 2)
			tab.Open(url + "/rules")
			tab.Act(
				"document.querySelector('#try-text').value = '" + text +
					"'; document.querySelector('[action=\"/rules/try\"] .btn-primary').click()",
			)
			eventually(
				t, tab,
				"document.readyState == 'complete' && document.querySelector('[data-testid=tried], #try-text-wrong')",
			)
			checkConsoleAfter400(t, tab)
			for _, width := range []int64{1440, 390} {
				tab.Viewport(width, 900)
				for theme, only := range map[string][]string{"light": nil, "dark": {"color-contrast"}} {
					tab.Act(
						`document.documentElement.dataset.theme = "` + theme +
							`"; document.getAnimations().forEach(a => a.finish())`,
					)
					if wide := js[int](tab, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
						t.Errorf("%d px too wide at %d", wide, width)
					}
					for _, fault := range tab.Axe(only...) {
						t.Errorf("%s, %d px: %s", theme, width, fault)
					}
				}
			}
		})
	}
}
