package system

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestADamagedStore: dlo meets a page of its file that cannot be right. It says so on every page
// and in /readyz, and writes nothing more: what dies waits in the broker. With a backup in the
// place of the file it goes on.
func TestADamagedStore(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(t, url, "default: {retry: {delays: []}}\n")
	p.copied = true
	p.Start("")
	p.Draining()
	a.work()
	const letters = 40
	publish := func(from, n int) {
		a.publish(n, func(i int) (string, string) {
			return fmt.Sprintf("letter %d %s", from+i, strings.Repeat("x", 1500)), fmt.Sprint(from + i)
		})
	}
	publish(0, letters)
	eventually(t, "all letters stored", func() bool { return p.letters("dead") == letters })
	id := string(p.ids(`SELECT id, random FROM letters LIMIT 1`)[0])
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	whole, err := os.ReadFile(p.store)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	broken, pages := bytes.Clone(whole), 0
	for at := page; at < len(broken); at += page {
		if bytes.Contains(broken[at:at+page], bytes.Repeat([]byte("x"), 1000)) && broken[at] == 0x0d { // a leaf of a table
			broken[at], pages = 0xff, pages+1
		}
	}
	if pages == 0 {
		t.Fatal("no page has a body")
	}
	if err := os.WriteFile(p.store, broken, 0o600); err != nil {
		t.Fatal(err)
	}

	p.Start("")
	p.Draining()
	if status, _ := p.get("/letters/" + id); status != 500 {
		t.Errorf("a letter that cannot be read: %d", status)
	}
	eventually(t, "/readyz says it", func() bool { _, body := p.get("/readyz"); return strings.Contains(body, `"kind":"store_damaged"`) })
	if _, page := p.get("/"); !strings.Contains(page, "The file of the store is damaged") || strings.Contains(page, "Nothing needs a person") {
		t.Error("Overview does not say it")
	}
	publish(letters, 10)
	eventually(t, "the letters wait in the broker", func() bool { return ready(t, a.conn, "dlo.letters") == 10 })
	p.Kill9()

	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(p.store + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(p.store, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Start("")
	eventually(t, "all letters stored", func() bool { return p.finds("") == letters+10 && ready(t, a.conn, "dlo.letters") == 0 })
}
