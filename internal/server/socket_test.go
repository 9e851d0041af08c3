package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSockets checks that dlo creates its socket in place of one that an ended program left behind,
// but not in place of one on which a program still listens. It also checks who can connect.
func TestSockets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dlo.sock")
	mode := func() os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	first, err := listen([]string{"unix:" + path}, false)
	if err != nil || mode() != 0o600 {
		t.Fatal(mode(), err)
	}
	if _, err := listen([]string{"unix:" + path}, true); err == nil ||
		!strings.Contains(err.Error(), "another program listens there") {
		t.Errorf("beside another program: %v", err)
	}
	first.Close()
	second, err := listen([]string{"unix:" + path}, true)
	if err != nil || mode() != 0o660 {
		t.Fatal(mode(), err)
	}
	go func() {
		if c, err := second.Accept(); err == nil {
			c.Close()
		}
	}()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	second.Close()
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("what is left: %v, %v", left, err)
	}
	file := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(file, []byte("notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen([]string{"unix:" + file}, true); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("in place of a file: %v", err)
	}
	if _, err := listen([]string{"unix:" + filepath.Join(t.TempDir(), "gone", "s")}, true); err == nil {
		t.Error("in a directory that does not exist")
	}
}
