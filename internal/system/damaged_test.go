package system

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestADamagedStoreIsNotWritten flips a bit in the table of bodies while dlo is stopped. Letters
// that arrive after that must wait in the broker. /readyz, the Overview page and the pager must say
// how to repair the store. After an earlier copy is restored, all letters must be stored.
func TestADamagedStoreIsNotWritten(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	pager := newReceiver(t)
	p := newChild(t, url, pager.configFor(t, "page"))
	p.Start("")
	p.Draining()
	a.work()
	letter := func(first int) func(int) (string, string) {
		return func(i int) (string, string) { return fmt.Sprintf("letter %d", first+i), fmt.Sprint(first + i) }
	}
	a.publish(20, letter(0))
	eventually(t, "the first letters", func() bool { return p.letters("dead") == 20 })
	p.copied = true
	page := p.ask(`SELECT rootpage FROM sqlite_schema WHERE name = 'segments'`)
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	good, err := os.ReadFile(p.store)
	if err != nil {
		t.Fatal(err)
	}
	flip := []byte{good[(page-1)*4096] ^ 1}
	file, err := os.OpenFile(p.store, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(flip, int64(page-1)*4096); err != nil {
		t.Fatal(err)
	}
	file.Close()
	p.Start("")
	a.publish(30, letter(20))
	eventually(t, "/readyz says it", func() bool {
		code, body := p.get("/readyz")
		return code == 503 && strings.Contains(body, `"kind":"store_damaged","severity":"page"`) &&
			strings.Contains(body, "put a backup in its place")
	})
	if _, page := p.get("/"); !strings.Contains(page, "The store is damaged.") ||
		strings.Contains(page, "Nothing needs a person") {
		t.Error("Overview does not say it")
	}
	pager.waitForNotice(t, "The store is damaged.")
	eventually(t, "the letters wait in the broker", func() bool { return ready(t, a.conn, "dlo.letters") == 30 })
	p.Stop()
	if err := os.WriteFile(p.store, good, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.Remove(p.store + beside); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	p.Start("")
	eventually(t, "all letters stored", func() bool { return p.letters("dead") == 50 })
	if surplus, _ := a.checkStore(p); surplus != 0 {
		t.Errorf("%d rows more than letters", surplus)
	}
}
