package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// smallDisk moves the store of a dlo to a file system of its own, with the given size. The result
// "grow" is a function that enlarges the file system to 2 GiB.
func smallDisk(t *testing.T, p *child, size string) (grow func()) {
	t.Helper()
	dir := storetest.Disk(t, size)
	t.Cleanup(func() {
		if p.cmd != nil {
			p.Kill9()
		}
	})
	text, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "dlo.db")
	if err := os.WriteFile(p.config, []byte(strings.ReplaceAll(string(text), p.store, store)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.store = store
	return func() {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=2g"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAFullDisk lets the store fill its disk. dlo must not acknowledge a letter before it is
// stored. Once there is room, dlo must continue automatically.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(
		t, url,
		"default: {retry: {delays: []}}\ndisk: {stop_below: 0, stop_below_percent: 0, reserve: 0}\ningest: {letters: 20}\n",
	)
	grow := smallDisk(t, p, "16m")
	p.Start("")
	p.Draining()
	a.work()
	const letters = 150
	a.publish(letters, func(i int) (string, string) {
		return fmt.Sprintf("%d %s", i, string(storetest.Noise(200_000))), fmt.Sprint(i)
	})
	eventually(t, "the disk full", func() bool { return strings.Contains(p.Log(), "database or disk is full") })
	if n := p.letters(); n == 0 || n == letters {
		t.Errorf("%d letters are stored on a disk that holds some of them", n)
	}
	eventually(
		t, "/readyz says it",
		func() bool { _, body := p.get("/readyz"); return strings.Contains(body, `"kind":"disk"`) },
	)
	if _, page := p.get("/"); !strings.Contains(page, "dlo takes in no letters") ||
		strings.Contains(page, "Nothing needs a person") {
		t.Error("Overview does not say that nothing is taken in")
	}
	grow()
	eventually(t, "all letters stored", func() bool { return p.letters("dead") == letters })
	if surplus, _ := a.checkStore(p); surplus != 0 {
		t.Errorf("%d rows more than letters", surplus)
	}
	eventually(t, "the inbox empty", func() bool { return ready(t, a.conn, "dlo.letters") == 0 })
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := p.count("pragma_integrity_check", `integrity_check <> 'ok'`); n != 0 {
		t.Errorf("%d complaints of the integrity check", n)
	}
}

// TestANearlyFullDisk checks what happens when less than disk.stop_below is free. dlo must take in
// no letters, so that they wait in the broker. Every page and /readyz must say this.
func TestANearlyFullDisk(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(t, url, "default: {retry: {delays: []}}\n")
	warm := newChild(t, url, "") // this first run declares the inbox, so that letters do not get lost
	warm.Start("")
	warm.Draining()
	if code := warm.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	grow := smallDisk(t, p, "64m")
	p.Start("")
	a.work()
	a.publish(30, func(i int) (string, string) { return fmt.Sprint(i), fmt.Sprint(i) })
	eventually(t, "the letters in the broker", func() bool { return ready(t, a.conn, "dlo.letters") == 30 })
	for _, path := range []string{"/letters?q=", "/operations"} {
		if _, page := p.get(path); !strings.Contains(page, "dlo takes in no letters") {
			t.Errorf("%s does not say that nothing is taken in", path)
		}
	}
	if _, body := p.get("/readyz"); !strings.Contains(body, "nearly full") {
		t.Errorf("/readyz does not say it: %s", body)
	}
	if n := p.letters(); n != 0 {
		t.Errorf("%d letters were taken in", n)
	}
	// dlo checks the disk every second, but logs the message only five times.
	said := func() int { return strings.Count(p.Log(), `msg="dlo takes in no letters"`) }
	eventually(t, "the log says it", func() bool { return said() >= 5 })
	time.Sleep(3 * time.Second)
	if n := said(); n != 5 {
		t.Errorf("%d lines", n)
	}
	grow()
	eventually(t, "all letters stored", func() bool { return p.letters("dead") == 30 })
}

// TestAFloodStopsAboveTheLimit lets a flood of letters fill the disk. dlo must stop taking in
// letters before less than disk.stop_below is free.
func TestAFloodStopsAboveTheLimit(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	disk := "disk: {stop_below: 8MiB, stop_below_percent: 0, reserve: 0}\n"
	p := newChild(t, url, "default: {retry: {delays: []}}\n"+disk)
	smallDisk(t, p, "64m")
	p.Start("")
	p.Draining()
	a.publish(4000, func(i int) (string, string) {
		return fmt.Sprintf("%d %s", i, string(storetest.Noise(20_000))), fmt.Sprint(i)
	})
	a.work()
	eventually(t, "dlo takes in no letters", func() bool {
		_, body := p.get("/readyz")
		return strings.Contains(body, "nearly full")
	})
	time.Sleep(2 * time.Second) // what was on its way has been stored
	var st syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(p.store), &st); err != nil {
		t.Fatal(err)
	}
	free := float64(st.Bavail) * float64(st.Bsize) / (1 << 20)
	t.Logf("%.1f MiB are free, with %d letters stored", free, p.letters())
	if free < 8 {
		t.Errorf("%.1f MiB are free, and 8 MiB must be", free)
	}
}
