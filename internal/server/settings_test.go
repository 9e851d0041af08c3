package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const settingsConfig = "# of the team\r\nstore: %[1]s/dlo.db\r\nlisten: 127.0.0.1:0\r\n" +
	"brokers: [{name: main, url: \"amqp://guest:guest@127.0.0.1:1/\"}]\r\n" +
	"schemas: {directory: %[1]s/schemas}\r\ndefault: {retry: {delays: [10s]}} # agreed\r\nsearch: {fields: [a]}"

// openFile starts a dlo with a configuration file, and returns the file.
func openFile(t *testing.T) (*Server, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "dlo.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, settingsConfig, dir), 0o640); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), cfg, Options{
		Getenv: func(string) string { return "" }, Log: io.Discard, Crash: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, path
}

var ana = deadletter.Principal{Name: "ana"}

func defaultDelays(delays ...string) deadletter.Setting {
	return deadletter.Setting{Key: deadletter.SettingDelays, Rule: "default", Delays: delays}
}

// saved makes a dry run of a setting, and then saves it.
func saved(t *testing.T, s *Server, to deadletter.Setting) {
	t.Helper()
	seen, _, err := s.ChangeSetting(t.Context(), ana, to, "")
	if err != nil || seen.Unsaved != "" {
		t.Fatalf("%+v %v", seen, err)
	}
	if c, _, err := s.ChangeSetting(t.Context(), ana, to, seen.Digest); err != nil || !c.Saved {
		t.Fatalf("%+v %v", c, err)
	}
}

func digestOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// TestASettingIsSaved saves settings in a file. The other bytes and the mode of the file stay, the
// rules are in use, and the audit names the person, the key, and the values.
func TestASettingIsSaved(t *testing.T) {
	t.Parallel()
	s, path := openFile(t)
	before, _ := os.ReadFile(path)
	saved(t, s, defaultDelays("1s", "2m"))
	if d := s.rules.Set().Default.Retry.Delays; len(d) != 2 || d[1] != 2*time.Minute {
		t.Errorf("the delays in use are %s", d)
	}
	saved(t, s, deadletter.Setting{Key: deadletter.SettingFields, Fields: []string{"a", "b.c"}})
	after, _ := os.ReadFile(path)
	want := strings.NewReplacer("[10s]", "[1s, 2m]", "[a]", "[a, b.c]").Replace(string(before))
	if string(after) != want {
		t.Errorf("the file is %q", after)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("the mode is %v %v", info.Mode(), err)
	}
	if f := s.rules.Set().Fields; len(f) != 2 {
		t.Errorf("the next form has the fields %q", f)
	}
	l := ledger{Server: s, t: t}
	var said []string
	for _, a := range l.acts() {
		if a.Kind == deadletter.ActConfigured && a.Actor == "ana" {
			said = append(said, a.Detail)
		}
	}
	if got := strings.Join(said, "\n"); got != "default.retry.delays: [1s, 2m], before [10s]\nsearch.fields.1: b.c, before none" {
		t.Errorf("the audit has\n%s", got)
	}
	if list, _ := filepath.Glob(filepath.Dir(path) + "/.dlo.yaml*"); list != nil {
		t.Errorf("%q is left", list)
	}
}

// TestAFileThatIsNotReplaced checks when dlo does not save a setting: the file is a link, somebody
// has changed it, or there is none. The file stays as it is, and the audit has nothing.
func TestAFileThatIsNotReplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		make   func(t *testing.T, s *Server, path string)
		reason string
	}{
		{"a symbolic link", func(t *testing.T, _ *Server, path string) {
			if err := errorsOf(os.Rename(path, path+".real"), os.Symlink(path+".real", path)); err != nil {
				t.Fatal(err)
			}
		}, "is a link, or no regular file"},
		{"a second name", func(t *testing.T, _ *Server, path string) {
			if err := os.Link(path, path+".other"); err != nil {
				t.Fatal(err)
			}
		}, "is a link, or no regular file"},
		{"changed since it was read", func(t *testing.T, _ *Server, path string) {
			text, _ := os.ReadFile(path)
			if err := os.WriteFile(path, append(text, "\r\n# by hand"...), 0o640); err != nil {
				t.Fatal(err)
			}
		}, "has changed since dlo read it; send SIGHUP to dlo, or restart it"},
		{"no file", func(_ *testing.T, s *Server, _ string) {
			cfg, _ := config.Load("", s.getenv)
			s.cfg.Rules.File = ""
			s.rules.Replace(&cfg.Rules)
		}, "without a configuration file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, path := openFile(t)
			c.make(t, s, path)
			before, _ := os.ReadFile(path)
			seen, set, err := s.ChangeSetting(t.Context(), ana, defaultDelays("1s"), "")
			if err != nil || !strings.Contains(seen.Unsaved, c.reason) || !strings.Contains(seen.YAML, "delays: [1s]") ||
				len(set.Default.Retry.Delays) != 1 {
				t.Errorf("%+v %v", seen, err)
			}
			if _, _, err := s.ChangeSetting(t.Context(), ana, defaultDelays("1s"), digestOf(before)); !errors.Is(
				err, deadletter.ErrConflict,
			) {
				t.Errorf("saving: %v", err)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Errorf("the file is %q", after)
			}
			if acts := (&ledger{Server: s, t: t}).acts(); len(acts) != 0 {
				t.Errorf("the audit has %+v", acts)
			}
		})
	}
}

// TestSettingsAreSavedOneAtATime saves two changes that people saw at the same time. One is saved,
// and the other person has to look again.
func TestSettingsAreSavedOneAtATime(t *testing.T) {
	t.Parallel()
	s, path := openFile(t)
	seen, _, err := s.ChangeSetting(t.Context(), ana, defaultDelays("1s"), "")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wait.Go(func() {
			_, _, errs[i] = s.ChangeSetting(context.Background(), ana, defaultDelays(fmt.Sprintf("%ds", i+1)), seen.Digest)
		})
	}
	wait.Wait()
	done := 0
	for i, err := range errs {
		text, _ := os.ReadFile(path)
		switch {
		case err == nil:
			done++
			if !strings.Contains(string(text), fmt.Sprintf("[%ds]", i+1)) {
				t.Errorf("the file is %s", text)
			}
		case !errors.Is(err, deadletter.ErrConflict) && !strings.Contains(err.Error(), "already"):
			t.Error(err)
		}
	}
	if done != 1 {
		t.Errorf("%d of the changes were saved", done)
	}
}

// TestASettingIsNotSavedWithoutItsAct closes the store before a change is saved. Without the audit,
// the file must stay as it was.
func TestASettingIsNotSavedWithoutItsAct(t *testing.T) {
	t.Parallel()
	s, path := openFile(t)
	before, _ := os.ReadFile(path)
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ChangeSetting(t.Context(), ana, defaultDelays("1s"), digestOf(before)); err == nil {
		t.Error("it was saved")
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Errorf("the file is %q", after)
	}
}
