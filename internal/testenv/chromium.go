package testenv

import (
	"context"
	"fmt"
	"os/exec"
	"sync"

	"github.com/chromedp/chromedp"
)

// chrome is the only Chromium of a test binary. Each test has its own browser context, and browser
// contexts share nothing.
var chrome sharedChrome

type sharedChrome struct {
	once   sync.Once
	ctx    context.Context
	cancel context.CancelFunc
	folder *folder
	err    error
}

// start returns the chromedp context of the browser. The first call starts the browser.
func (s *sharedChrome) start() (context.Context, error) {
	s.once.Do(func() {
		if s.err = s.launch(); s.err != nil {
			s.stop()
		}
	})
	return s.ctx, s.err
}

func (s *sharedChrome) launch() (err error) {
	path, err := findChromium()
	if err != nil {
		return err
	}
	if s.folder, err = newFolder("browser"); err != nil {
		return err
	}
	// headless, without a first run, sync or networking in the background
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(s.folder.file("profile")),
		chromedp.Env("HOME="+s.folder.path, "TMPDIR="+s.folder.path), // keeps the files of Chromium in this folder
		// Chromium's own sandbox does not work for root, nor in most containers
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		// The optimizing compilers of V8 cost more than they save, because each page lives for only
		// about a second. On all pages together, axe took 115 s of processor time with the
		// compilers, and 97 s without them (Chromium 156).
		chromedp.Flag("js-flags", "--no-turbofan --no-maglev"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-domain-reliability", true),
		chromedp.Flag("disable-quic", true),
		// In this browser, only loopback has an address. No page and no service of the browser can
		// therefore reach another machine. For tests with proxies, the name dlo.example.com also
		// leads to loopback.
		chromedp.Flag(
			"host-resolver-rules",
			"MAP dlo.example.com 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
		),
	)
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	s.ctx, s.cancel = chromedp.NewContext(allocator)
	if err := chromedp.Do(s.ctx); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// stop ends the browser, waits for it, and removes its profile.
func (s *sharedChrome) stop() {
	if s.cancel != nil {
		s.cancel()
	}
	if s.folder != nil {
		s.folder.remove()
	}
}

// findChromium returns the path of Chromium or Chrome. If neither is installed, the error wraps
// ErrMissing. It prefers the headless shell, which renders identical pages at half the cost per
// tab. With Chromium 156, the tests of web took 31 s of processor time instead of 85.
func findChromium() (string, error) {
	for _, name := range []string{
		"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: Chromium; to get it: apt-get install chromium-headless-shell", ErrMissing)
}
