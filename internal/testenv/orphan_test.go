package testenv

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// orphanVariable makes the test binary start a node and a browser. The binary then prints their
// folders and process ids, and waits until it is killed.
const orphanVariable = "DLO_TESTENV_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(orphanVariable) != "" {
		startAndWait()
	}
	os.Exit(Main(m))
}

// startAndWait starts a node and a browser, prints their folders and process ids on one line, and
// never returns.
func startAndWait() {
	n, err := Start(context.Background(), Options{Root: os.Getenv(brokerVariable)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	browser, err := chrome.start()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	pid := chromedp.FromContext(browser).Browser.Process().Pid
	fmt.Println("started", n.folder.path, chrome.folder.path, n.server.pid, n.epmd.pid, pid)
	select {}
}

// TestNothingOutlivesAKilledTestBinary kills a test binary, so that it cannot clean up. The kernel
// must kill its children, and the next run must remove its folders.
func TestNothingOutlivesAKilledTestBinary(t *testing.T) {
	Full(t)
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends children with their parent")
	}
	if _, err := findInstallation(os.Getenv(brokerVariable)); err != nil {
		Unavailable(t, err)
	}
	if _, err := findChromium(); err != nil {
		Unavailable(t, err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), orphanVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, readErr := bufio.NewReader(out).ReadString('\n')
	var node, browser string
	pids := make([]int, 3)
	_, scanErr := fmt.Sscanf(said, "started %s %s %d %d %d", &node, &browser, &pids[0], &pids[1], &pids[2])
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // returns an error, because the process was killed
	if scanErr != nil {
		t.Fatalf("the test binary said %q (%v, %v)", said, scanErr, readErr)
	}

	deadline := time.Now().Add(30 * time.Second)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Errorf("process %d still runs: %s", pid, commandLine(pid))
				_ = syscall.Kill(pid, syscall.SIGKILL)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}

	// The helper processes of Chromium end a moment later than Chromium. Until then, they may add a
	// file to a folder that is being removed.
	longAgo := time.Now().Add(-time.Hour)
	for kind, path := range map[string]string{"node": node, "browser": browser} {
		for there := true; there; {
			for _, p := range []string{path + "/lock", path} {
				if err := os.Chtimes(p, longAgo, longAgo); err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
			}
			f, err := newFolder(kind)
			if err != nil {
				t.Fatal(err)
			}
			f.remove()
			_, err = os.Stat(path)
			if there = !os.IsNotExist(err); there && time.Now().After(deadline) {
				t.Fatalf("the folder %s is still there (%v)", path, err)
			}
		}
	}
}

// TestRestsOfAFolderAreAbandoned uses the rest of a removed folder. While the folder was being
// removed, a killed process added a file to it. The rest has no lock file, and newFolder must
// remove it too.
func TestRestsOfAFolderAreAbandoned(t *testing.T) {
	t.Parallel()
	late, err := os.MkdirTemp("", "dlo-test-late-*")
	if err != nil {
		t.Fatal(err)
	}
	young, err := os.MkdirTemp("", "dlo-test-late-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(young)
	if err := os.WriteFile(late+"/state", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	longAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(late, longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	f, err := newFolder("late")
	if err != nil {
		t.Fatal(err)
	}
	defer f.remove()
	if _, err := os.Stat(late); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", late, err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("a folder that has no lock yet was removed: %v", err)
	}
}

// TestFoldersInUseAreNotAbandoned checks that a folder in use is never removed, even if it is old.
func TestFoldersInUseAreNotAbandoned(t *testing.T) {
	t.Parallel()
	f, err := newFolder("kept")
	if err != nil {
		t.Fatal(err)
	}
	defer f.remove()
	longAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(f.file("lock"), longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	g, err := newFolder("kept")
	if err != nil {
		t.Fatal(err)
	}
	defer g.remove()
	if _, err := os.Stat(f.path); err != nil {
		t.Error(err)
	}
}

// alive reports whether a process is running. It returns false for a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func commandLine(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(text), "\x00", " ")
}
