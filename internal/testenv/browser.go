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
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"
)

// tabLimit is the time limit for one step, because a step may wait for something that never
// appears.
const tabLimit = time.Minute

// Tab is a browser tab of one test. It has its own browser context, so it shares no cookies,
// storage or cache with other tests. A method of Tab that fails also fails the test. Only one
// goroutine may use a Tab.
type Tab struct {
	t        testing.TB
	ctx      context.Context
	messages func() (chromedp.ConsoleMessage, error, bool)
	fences   int
	console  []string
	csp      []string
	notes    []string
}

// Browser opens a tab and closes it at the end of the test. The first call in a test binary starts
// the browser. The viewport is 1280 x 800. If Chromium is not installed, the test is skipped, and
// the message shows the command that installs it. With DLO_TEST_REQUIRE=1, the test fails instead.
func Browser(t testing.TB) *Tab {
	t.Helper()
	skipIfShort(t, "a browser")
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

// Context returns the chromedp context of the tab. Use it with chromedp.Run for everything that Tab
// has no method for.
func (b *Tab) Context() context.Context { return b.ctx }

// Do runs steps in order. It fails the test if a step fails or if all steps together take more than
// a minute.
func (b *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, tabLimit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// Act evaluates an expression that may lead to another page, such as a click on a link. Chromium
// may then discard the result together with the old page (error -32000). Act ignores that error,
// because the expression was still evaluated. Later steps must wait for the new page.
func (b *Tab) Act(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, tabLimit)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](expression)); err != nil && !leftBehind(err) {
		b.t.Fatalf("browser: %v", err)
	}
}

// Is reports whether an expression is true on the current page. It returns false while the browser
// replaces one page with another.
func (b *Tab) Is(expression string) bool {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, tabLimit)
	defer cancel()
	ok, err := chromedp.Run(
		ctx, chromedp.Evaluate[bool]("(() => { try { return !!("+expression+") } catch { return false } })()"),
	)
	if err != nil && !leftBehind(err) {
		b.t.Fatalf("browser: %v", err)
	}
	return ok && err == nil
}

// leftBehind reports whether an error means that the browser left the page before the page could
// respond.
func leftBehind(err error) bool {
	return strings.Contains(err.Error(), "navigated or closed") ||
		strings.Contains(err.Error(), "context was destroyed") || strings.Contains(err.Error(), "Cannot find context")
}

// Open loads a page and waits until it is loaded.
func (b *Tab) Open(url string) {
	b.t.Helper()
	b.Do(chromedp.Navigate(url))
}

// Until waits until an expression is true on the current page. If it is not true in time, Until
// fails the test with the address and the text of the page. While the browser loads or leaves a
// page, the expression counts as not true yet.
func (b *Tab) Until(limit time.Duration, expression string) {
	b.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if b.Is(expression) {
			return
		}
	}
	b.t.Fatalf("not true within %s: %s\non %s", limit, expression, Run(b, chromedp.Evaluate[string](
		`location.href + "\n" + (document.querySelector('main')?.innerText ?? '').slice(0, 2000)`,
	)))
}

// Back goes back to the previous page, and waits until that page is loaded again. Chromium may
// first show the page as it was. The scripts of dlo then reload it, so Back waits for the reload.
// Otherwise a test could act on a page that is about to go away.
func (b *Tab) Back() {
	b.t.Helper()
	b.Act("window.leftBehind = true; history.back()")
	for until := time.Now().Add(2 * tabLimit); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if b.Is("!window.leftBehind && window.dlo && document.readyState == 'complete'") {
			return
		}
	}
	b.t.Fatal("browser: the page before was not loaded again")
}

// OnEveryPage runs a script on every page that is loaded from now on. The script runs before the
// page's own scripts.
func (b *Tab) OnEveryPage(script string) {
	b.t.Helper()
	b.Do(command(cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{
		Source: script,
	}))
}

// Viewport sets the size of the page in CSS pixels.
func (b *Tab) Viewport(width, height int64) {
	b.t.Helper()
	b.Do(chromedp.EmulateViewport(width, height))
}

// DarkScheme sets prefers-color-scheme for pages: dark if "on" is true, and light otherwise.
func (b *Tab) DarkScheme(on bool) {
	b.t.Helper()
	scheme := "light"
	if on {
		scheme = "dark"
	}
	b.media("prefers-color-scheme", scheme)
}

// LessMotion sets prefers-reduced-motion to reduce for pages.
func (b *Tab) LessMotion() {
	b.t.Helper()
	b.media("prefers-reduced-motion", "reduce")
}

// media sets one media feature for pages. The feature that was set before no longer applies.
func (b *Tab) media(feature, value string) {
	b.t.Helper()
	b.Do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: feature, Value: value}},
	}))
}

// TimeZone sets the time zone for the scripts of pages, for example Asia/Tokyo.
func (b *Tab) TimeZone(name string) {
	b.t.Helper()
	b.Do(command(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name}))
}

// JavaScript enables or disables the scripts of pages that are loaded from now on. The test can
// still evaluate expressions.
func (b *Tab) JavaScript(on bool) {
	b.t.Helper()
	b.Do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on}))
}

// Heap forces a garbage collection. It returns the number of bytes that JavaScript and the page use
// after that.
func (b *Tab) Heap() float64 {
	b.t.Helper()
	b.Do(command(heapprofiler.CollectGarbage, cdp.Empty{}))
	u := Run(b, func(ctx context.Context, t *chromedp.Target) (cdpruntime.GetHeapUsageResult, error) {
		return cdp.Call(ctx, t, cdpruntime.GetHeapUsage, cdp.Empty{})
	})
	return u.UsedSize + u.EmbedderHeapUsedSize
}

// Screenshot writes a PNG picture of the whole page to a file. It creates the folder of the file.
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

// Run runs one action in the tab and returns its value, for example testenv.Run(tab,
// chromedp.Title()). If the action fails or takes more than a minute, Run fails the test.
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

// Console returns the errors of all pages of the tab so far, oldest first. These are logged errors,
// uncaught exceptions, and errors of the browser, such as a resource that did not load.
func (b *Tab) Console() []string {
	b.t.Helper()
	b.drain()
	return b.console
}

// Notes returns what pages of the tab wrote to the console with console.debug and the prefix
// "dlo test: note ".
// Unlike what they write to a storage, this keeps its order and survives a navigation.
func (b *Tab) Notes() []string {
	b.t.Helper()
	b.drain()
	return b.notes
}

// CSPReports returns the violations of content security policies on all pages of the tab so far,
// oldest first. An example is "script-src-elem blocked inline". Chromium also writes these
// violations to the console. If a page runs no JavaScript, they appear only in the console.
func (b *Tab) CSPReports() []string {
	b.t.Helper()
	b.drain()
	return b.csp
}

// Forget drops what the pages of the tab have logged and violated so far.
func (b *Tab) Forget() {
	b.t.Helper()
	b.drain()
	b.console, b.csp = nil, nil
}

const (
	cspMark   = "dlo test: csp "
	fenceMark = "dlo test: fence "
	noteMark  = "dlo test: note "
)

// reportViolations is a script that runs before each page's own scripts. It writes violations of
// the content security policy to the console. In the console, they keep their order and survive a
// navigation.
const reportViolations = `addEventListener("securitypolicyviolation", e => console.debug(` + "`" + cspMark +
	"${JSON.stringify(" + `
	{directive: e.effectiveDirective, blocked: e.blockedURI, source: e.sourceFile, line: e.lineNumber, sample: e.sample})}` + "`" + `), true)`

// drain reads the console up to a line that drain itself writes. Before that, it waits 50 ms,
// because a page gets the event about a violation only after its current task.
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
		case strings.HasPrefix(m.Text, noteMark):
			b.notes = append(b.notes, strings.TrimPrefix(m.Text, noteMark))
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

// TrustAll makes the tab accept certificates of unknown authorities. Tests create such
// certificates.
func (b *Tab) TrustAll() {
	b.t.Helper()
	b.Do(command(security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true}))
}

// Cookie sets a cookie for a domain. The browser sends it only with https.
func (b *Tab) Cookie(domain, name, value string) {
	b.t.Helper()
	secure := true
	b.Do(command(network.SetCookie, network.SetCookieParams{Name: name, Value: value, Domain: domain, Secure: &secure}))
}

// command returns a step that sends a command of the devtools protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}
