package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	cdppage "github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tabLimit ends a step that waits for something that never shows.
const tabLimit = time.Minute

// Tab is a browser tab of one test, in a browser context of its own: no cookies, storage or cache
// of another test. Its methods fail the test when they fail. It belongs to one goroutine.
type Tab struct {
	t        testing.TB
	ctx      context.Context
	messages func() (chromedp.ConsoleMessage, error, bool)
	fences   int
	console  []string
	csp      []string
}

// Browser opens a tab that closes with the test; the first call of a test binary starts the
// browser. Its viewport is 1280 x 800. Where no Chromium is installed the test is skipped with the
// command that would change that; with DLO_TEST_REQUIRE=1 it fails.
func Browser(t testing.TB) *Tab {
	t.Helper()
	long(t, "a browser")
	browser, err := chrome.start()
	if err != nil {
		Unavailable(t, fmt.Errorf("browser: %w", err))
	}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	tab := &Tab{t: t, ctx: ctx}
	next, stop := iter.Pull2(chromedp.Console(ctx)) // opens the tab
	t.Cleanup(stop)
	tab.messages = next
	tab.OnEveryPage(reportViolations)
	tab.Viewport(1280, 800)
	return tab
}

// Context returns the chromedp context of the tab, for chromedp.Run and for what Tab has no method
// for.
func (b *Tab) Context() context.Context { return b.ctx }

// Do runs steps in order and fails the test where one fails, or where all of them together take
// more than a minute.
func (b *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, tabLimit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// Act evaluates an expression that may lead to another page, such as a click on a link. Where it
// does, Chromium may take the answer away with the old page (error -32000); the expression was
// evaluated all the same, and what follows has to wait for the new page.
func (b *Tab) Act(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, tabLimit)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](expression)); err != nil && !leftBehind(err) {
		b.t.Fatalf("browser: %v", err)
	}
}

// Is says whether an expression is true on the page that is shown now; false also while one page
// gives way to another.
func (b *Tab) Is(expression string) bool {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, tabLimit)
	defer cancel()
	ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("(() => { try { return !!("+expression+") } catch { return false } })()"))
	if err != nil && !leftBehind(err) {
		b.t.Fatalf("browser: %v", err)
	}
	return ok && err == nil
}

// leftBehind says that a page was left before it could answer.
func leftBehind(err error) bool {
	return strings.Contains(err.Error(), "navigated or closed") || strings.Contains(err.Error(), "context was destroyed") || strings.Contains(err.Error(), "Cannot find context")
}

// Open loads a page and waits until it is loaded.
func (b *Tab) Open(url string) {
	b.t.Helper()
	b.Do(chromedp.Navigate(url))
}

// OnEveryPage runs a script on each page that is loaded from now on, before its own scripts.
func (b *Tab) OnEveryPage(script string) {
	b.t.Helper()
	b.Do(command(cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script}))
}

// Viewport sets the size of the page in CSS pixels.
func (b *Tab) Viewport(width, height int64) {
	b.t.Helper()
	b.Do(chromedp.EmulateViewport(width, height))
}

// DarkScheme has pages see prefers-color-scheme: dark, or light.
func (b *Tab) DarkScheme(on bool) {
	b.t.Helper()
	scheme := "light"
	if on {
		scheme = "dark"
	}
	b.media("prefers-color-scheme", scheme)
}

// LessMotion has pages see prefers-reduced-motion: reduce.
func (b *Tab) LessMotion() {
	b.t.Helper()
	b.media("prefers-reduced-motion", "reduce")
}

// media has pages see one feature of media, and no other that was set before.
func (b *Tab) media(feature, value string) {
	b.t.Helper()
	b.Do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: feature, Value: value}},
	}))
}

// TimeZone has the scripts of pages be in a zone, such as Asia/Tokyo.
func (b *Tab) TimeZone(name string) {
	b.t.Helper()
	b.Do(command(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name}))
}

// JavaScript switches the scripts of pages loaded from now on. The test itself can still evaluate.
func (b *Tab) JavaScript(on bool) {
	b.t.Helper()
	b.Do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on}))
}

// Heap returns how many bytes of JavaScript and of the page are in use, after a forced collection.
func (b *Tab) Heap() float64 {
	b.t.Helper()
	b.Do(command(heapprofiler.CollectGarbage, cdp.Empty{}))
	u := Run(b, func(ctx context.Context, t *chromedp.Target) (cdpruntime.GetHeapUsageResult, error) {
		return cdp.Call(ctx, t, cdpruntime.GetHeapUsage, cdp.Empty{})
	})
	return u.UsedSize + u.EmbedderHeapUsedSize
}

// Screenshot writes a picture of the whole page, as PNG, to a file, and makes its folder.
func (b *Tab) Screenshot(path string) {
	b.t.Helper()
	picture := Run(b, chromedp.FullScreenshot(100))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatalf("screenshot: %v", err)
	}
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		b.t.Fatalf("screenshot: %v", err)
	}
}

// Run runs one action in the tab and returns its value; for example testenv.Run(tab,
// chromedp.Title()). It fails the test where the action fails or takes more than a minute.
func Run[T any](b *Tab, a chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, tabLimit)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		b.t.Fatalf("browser: %v", err)
	}
	return v
}

// Console returns what went wrong on the pages of this tab so far, oldest first: errors that they
// logged, exceptions that nobody caught, and errors of the browser itself, such as a resource that
// did not load.
func (b *Tab) Console() []string {
	b.t.Helper()
	b.drain()
	return b.console
}

// CSPReports returns the violations of content security policies on the pages of this tab so far,
// oldest first, for example "script-src-elem blocked inline". Chromium writes them to the console
// as well. A page without JavaScript is only seen there.
func (b *Tab) CSPReports() []string {
	b.t.Helper()
	b.drain()
	return b.csp
}

const (
	cspMark   = "dlo test: csp "
	fenceMark = "dlo test: fence "
)

// reportViolations runs before the scripts of each page and hands violations to the test through
// the console, which keeps their order and survives a navigation.
const reportViolations = `addEventListener("securitypolicyviolation", e => console.debug(` + "`" + cspMark + "${JSON.stringify(" + `
	{directive: e.effectiveDirective, blocked: e.blockedURI, source: e.sourceFile, line: e.lineNumber, sample: e.sample})}` + "`" + `), true)`

// drain reads the console up to a line that it writes there itself. The page gets a moment first: a
// violation is an event, which the page hears of only after what it is doing now.
func (b *Tab) drain() {
	b.t.Helper()
	b.fences++
	fence := fmt.Sprintf("%s%d", fenceMark, b.fences)
	b.Do(chromedp.Sleep(50*time.Millisecond), chromedp.Evaluate[chromedp.Void](fmt.Sprintf("console.debug(%q)", fence)))
	for {
		m, err, ok := b.messages()
		if err != nil || !ok {
			b.t.Fatalf("browser: read the console: %v", err)
		}
		switch violation, found := strings.CutPrefix(m.Text, cspMark); {
		case m.Text == fence:
			return
		case found:
			b.csp = append(b.csp, readViolation(violation))
		case m.Type == chromedp.ConsoleError, m.Type == chromedp.ConsoleException, m.Type == "assert":
			b.console = append(b.console, strings.TrimSpace(fmt.Sprintf("%s %s", m, m.URL)))
		}
	}
}

func readViolation(text string) string {
	var v struct {
		Directive, Blocked, Source, Sample string
		Line                               int
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	s := v.Directive + " blocked " + v.Blocked
	if v.Source != "" {
		s += fmt.Sprintf(" at %s:%d", v.Source, v.Line)
	}
	if v.Sample != "" {
		s += ": " + v.Sample
	}
	return s
}

// command makes a step of a command of the devtools protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}
