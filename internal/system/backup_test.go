package system

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestABackupUnderLoad makes two backups while 500 letters die each second: one that the server
// sends, and one that the command makes from the file. dlo is killed, and the first backup is
// restored in an empty folder. dlo must send none of the letters of the backup by itself, and must
// say what is missing.
func TestABackupUnderLoad(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, address := testenv.VHost(t)
	a := newAudit(t, address, "orders", nil)
	const settings = "default: {retry: {delays: [1s]}}\nrequeue: {rate: 0, watch: 1h}\n"
	r := &restoring{newChild(t, address, settings), a}
	r.copied = true
	r.Start("")
	r.Draining()
	a.work()

	folder := t.TempDir()
	sent, local := filepath.Join(folder, "sent.db"), filepath.Join(folder, "local.db")
	var load sync.WaitGroup
	load.Go(func() {
		for i := range 60 {
			r.publish(i*50, 50)
			time.Sleep(100 * time.Millisecond)
		}
	})
	eventually(t, "letters are sent", func() bool { return a.copies() > 200 })
	said, _ := r.dlo(t.Context(), 0, "", "backup", sent, "--full")
	r.dlo(t.Context(), 0, "", "backup", local, "--config", r.config)
	load.Wait()
	eventually(t, "letters from after the backup are sent", func() bool { return a.copies() > 2000 })
	r.Kill9()
	time.Sleep(time.Second) // the worker accepts what is in its queue

	manifest := func(path string) (b deadletter.Backup) {
		t.Helper()
		text, err := os.ReadFile(path + ".json")
		if err == nil {
			err = json.Unmarshal(text, &b)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	m, later := manifest(sent), manifest(local)
	if !strings.Contains(said, fmt.Sprintf("%d letters", m.Total())) || m.Total() < 200 || m.Total() >= 3000 ||
		later.Total() < m.Total() {
		t.Errorf("%s%+v\n%+v", said, m, later)
	}
	a.mu.Lock()
	before := map[string]map[string]int{}
	for body, tokens := range a.accepted {
		before[body] = maps.Clone(tokens)
	}
	a.mu.Unlock()

	r.store = filepath.Join(t.TempDir(), "empty", "dlo.db")
	r.Configure(settings)
	said, _ = r.dlo(t.Context(), 0, "", "restore", sent, "--store", r.store)
	if !strings.Contains(said, fmt.Sprintf("%d letters as of", m.Total())) ||
		!strings.Contains(said, "It sends none of them automatically.") {
		t.Error(said)
	}
	db := r.file()
	had := map[string]bool{}
	rows, err := db.Query(`SELECT body FROM ` + storetest.Bodies)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			t.Fatal(err)
		}
		had[digest(body)] = true
	}
	rows.Close()
	r.Start("")
	// dlo waits 20 s first, for another dlo that has the current store
	within(t, time.Minute, "dlo says that the store is restored", func() bool {
		return len(r.problems(deadletter.ProblemStoreRestored)) > 0
	})
	p := r.problem(deadletter.ProblemStoreRestored)
	if !strings.Contains(p.Text, "letters were received that are not in this copy") {
		t.Errorf("%+v", p)
	}
	if n := r.finds("state:held doubt:restored"); n == 0 {
		t.Error("no letter is held")
	}
	time.Sleep(3 * time.Second) // more than the delay of a retry
	a.mu.Lock()
	defer a.mu.Unlock()
	for body, tokens := range a.accepted {
		if (had[body] || before[body] != nil) && !maps.Equal(tokens, before[body]) {
			t.Errorf("%s was sent by itself: %v, before %v", body, tokens, before[body])
		}
	}
}

// TestBackupsUnderKills kills dlo at random moments while it makes a backup, restores one, and
// migrates a store. No half file may be under the name of a backup, the store must be the old or
// the new one, and the same command must then succeed.
func TestBackupsUnderKills(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	folder := t.TempDir()
	config := filepath.Join(folder, "dlo.yaml")
	path := storetest.File(t)
	fill(t, path, 4000)
	if err := os.WriteFile(config, fmt.Appendf(nil, "store: %s\n", path), 0o600); err != nil {
		t.Fatal(err)
	}
	// run runs a command, and kills it after a part of the time that it needs
	run := func(kill bool, longest time.Duration, args ...string) error {
		t.Helper()
		list, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), runVariable+"="+string(list))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if kill {
			defer time.AfterFunc(time.Duration(random.Int64N(int64(longest))), func() { cmd.Process.Kill() }).Stop()
		}
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out.String())
		}
		return nil
	}
	letters := func(path string) int {
		t.Helper()
		c, err := store.OpenCopy(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		b, err := c.Check(t.Context(), true)
		if err != nil {
			t.Error(err)
		}
		return b.Total()
	}
	begun := time.Now()
	whole := filepath.Join(folder, "whole.db")
	if err := run(false, 0, "backup", whole, "--config", config); err != nil {
		t.Fatal(err)
	}
	longest := time.Since(begun)
	piped := exec.Command(os.Args[0])
	piped.Env = append(os.Environ(), runVariable+`=["backup", "-", "--config", "`+config+`"]`)
	content, err := piped.Output()
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "piped.db"), content, 0o600)
	}
	if err != nil || letters(filepath.Join(folder, "piped.db")) != 4000 {
		t.Error(err)
	}
	killed := 0
	to := filepath.Join(folder, "killed.db")
	for range 8 {
		if err := run(true, longest, "backup", to, "--config", config); err != nil {
			killed++
		}
		if _, err := os.Stat(to); err == nil {
			if n := letters(to); n != 4000 {
				t.Errorf("a backup has %d letters", n)
			}
		}
		os.Remove(to)
		os.Remove(to + ".json")
	}
	if err := run(false, 0, "backup", to, "--config", config); err != nil || killed == 0 {
		t.Error(killed, err)
	}

	target := filepath.Join(folder, "target", "dlo.db")
	if err := run(false, 0, "restore", whole, "--store", target); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		run(true, longest, "restore", whole, "--store", target, "--replace")
		if n := letters(target); n != 4000 {
			t.Errorf("after a restore that was killed, the store has %d letters", n)
		}
	}
	if err := run(false, 0, "restore", whole, "--store", target, "--replace"); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(target + ".restoring"); err != nil || len(left) > 0 {
		t.Error(left, err)
	}

	const older = 29
	for range 8 {
		path := storetest.FileOf(t, older)
		bodies := fillOlder(t, path, 3000)
		run(true, 600*time.Millisecond, "token", "add", "a", "--role", "viewer", "--store", path)
		if err := run(false, 0, "token", "add", "b", "--role", "viewer", "--store", path); err != nil {
			t.Error(err)
		}
		backups, err := filepath.Glob(path + ".before-schema-*")
		if err != nil || len(backups) != 1 {
			t.Fatal(backups, err)
		}
		c, err := store.OpenCopy(t.Context(), backups[0])
		if err != nil {
			t.Fatal(err)
		}
		if b, err := c.Check(t.Context(), false); err != nil || b.Schema != older {
			t.Errorf("the backup from before the migration has schema %d: %v", b.Schema, err)
		}
		c.Close()
		if c, err = store.OpenCopy(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if err := c.Sample(t.Context(), 0, func(l *deadletter.Letter) error {
			serial, _, _ := l.ID.Split()
			if l.Damage != "" || string(l.Body) != bodies[serial] {
				t.Errorf("letter %s is another after the migration: %s", l.ID, l.Damage)
			}
			delete(bodies, serial)
			return nil
		}); err != nil || len(bodies) > 0 {
			t.Errorf("%d letters are gone after the migration: %v", len(bodies), err)
		}
		c.Close()
	}
}

// fillOlder stores letters with bodies of 2,000 bytes in a store of schema 29. It returns the
// bodies by the serials of the letters.
func fillOlder(t *testing.T, path string, letters int64) map[int64]string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	none, err := deadletter.Properties{}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	run := func(statement string, args ...any) {
		t.Helper()
		if _, err := tx.Exec(statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	run(`INSERT INTO origins (id, broker, vhost, queue) VALUES (1, 'main', '/', 'sms')`)
	run(`INSERT INTO inboxes (id, broker, vhost, queue) VALUES (1, 'main', '/', 'dlo.letters')`)
	run(`INSERT INTO counters (state, origin, type, reason, grp, severity, n) VALUES ('dead', 1, 0, '', 0, '', $1)`, letters)
	bodies := map[int64]string{}
	for id := int64(4096); id < 4096+letters; id++ {
		bodies[id] = string(storetest.Noise(2000))
		run(`INSERT INTO letters (id, random, state, inbox, origin, received_at, changed_at, size)
			VALUES ($1, 1, 'dead', 1, 1, 1, 1, 2000)`, id)
		run(`INSERT INTO bodies (letter, exchange, routing_key, properties, body) VALUES ($1, '', '', $2, $3)`,
			id, none, []byte(bodies[id]))
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return bodies
}

// fill stores letters with bodies of 4,000 bytes.
func fill(t *testing.T, path string, letters int) {
	t.Helper()
	s, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range letters / 500 {
		w := deadletter.Window{
			Session: 1, Number: int64(n + 1), Broker: "main", VHost: "/", Inbox: "dlo.letters",
			Uncertain: deadletter.UncertainHold, Horizon: time.Minute, HorizonRows: 1000,
		}
		for i := range 500 {
			w.Arrivals = append(w.Arrivals, deadletter.Arrival{
				Exchange: "dlo.dlx", RoutingKey: "sms", Tag: uint64(i + 1), Body: storetest.Noise(4000),
			})
		}
		if _, err := s.Receive(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
}
