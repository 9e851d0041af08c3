package system

import (
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// unwritable makes all writes of a running dlo to files fail, as on a file system that becomes
// read-only. The returned function lets them succeed again. No special rights are needed.
func unwritable(t *testing.T, p *child) (writable func()) {
	t.Helper()
	limit := func(bytes uint64) {
		t.Helper()
		soft := syscall.Rlimit{Cur: bytes, Max: math.MaxUint64}
		if _, _, no := syscall.RawSyscall6(
			syscall.SYS_PRLIMIT64, uintptr(p.cmd.Process.Pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&soft)), 0,
			0, 0,
		); no != 0 {
			t.Fatal(no)
		}
	}
	limit(0)
	return func() { t.Helper(); limit(math.MaxUint64) }
}

// TestAStoreThatCannotBeWritten checks that dlo acknowledges nothing while its writes fail.
// /readyz, the Overview page and the pager must report the failure, although the notices are also
// kept in the store. Once writes succeed, dlo must continue automatically.
func TestAStoreThatCannotBeWritten(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	pager := newReceiver(t)
	p := newChild(t, url, pager.configFor(t, "page")+"ingest: {letters: 20}\n")
	p.Start("")
	p.Draining()
	a.work()
	letter := func(first int) func(int) (string, string) {
		return func(i int) (string, string) { return fmt.Sprintf("letter %d", first+i), fmt.Sprint(first + i) }
	}
	a.publish(20, letter(0))
	eventually(t, "the first letters", func() bool { return p.letters("dead") == 20 })
	writable := unwritable(t, p)
	a.publish(50, letter(20))
	eventually(t, "all others wait in the broker", func() bool { return ready(t, a.conn, "dlo.letters") == 50 })
	eventually(t, "/readyz says it", func() bool {
		_, body := p.get("/readyz")
		return strings.Contains(body, `"kind":"disk","severity":"page"`) &&
			strings.Contains(body, "The store cannot be written")
	})
	if _, page := p.get("/"); !strings.Contains(page, "The store cannot be written") ||
		strings.Contains(page, "Nothing needs a person") {
		t.Error("Overview does not say it")
	}
	pager.waitForNotice(t, "dlo takes in no letters")
	if n := p.letters(); n != 20 {
		t.Errorf("%d letters are stored", n)
	}
	writable()
	eventually(t, "all letters stored", func() bool { return p.letters("dead") == 70 })
	eventually(t, "the inbox empty", func() bool { return ready(t, a.conn, "dlo.letters") == 0 })
	if surplus, _ := a.checkStore(p); surplus != 0 {
		t.Errorf("%d rows more than letters", surplus)
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := p.count("pragma_integrity_check", `integrity_check <> 'ok'`); n != 0 {
		t.Errorf("%d complaints of the integrity check", n)
	}
}
