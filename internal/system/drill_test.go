package system

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/server"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// drilling is a finished run of dlo drill, with its exit code and its output.
type drilling struct {
	node      *testenv.Node
	code      int
	out, errs string
}

// saying is a writer that collects what a drill prints. The field "once" is a text. When the output
// contains this text, saying calls the function in the field "end".
type saying struct {
	mu   sync.Mutex
	text bytes.Buffer
	end  context.CancelFunc
	once string
}

func (s *saying) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.text.Write(text)
	if s.once != "" && strings.Contains(s.text.String(), s.once) {
		s.end()
	}
	return n, err
}

// drill runs dlo drill as the administrator "guest". If "interruptAt" is not "", it interrupts the
// run as soon as this text is printed.
func drill(t *testing.T, node *testenv.Node, interruptAt string, args ...string) drilling {
	t.Helper()
	defer logWait(t, "dlo drill "+strings.Join(args, " "))()
	env := map[string]string{
		"DLO_AMQP_URL": node.AMQPURL("/"), "DLO_MANAGEMENT_URL": node.ManagementURLOf("guest:guest"),
	}
	getenv := func(name string) string { return env[name] }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	errs := &saying{end: cancel, once: interruptAt}
	program := cli.Program{Ctx: ctx, Getenv: getenv, Stdout: &out, Stderr: errs, Version: "test"}
	err := cli.Run(program, &commands{}, append([]string{"drill"}, args...), server.Options{
		Getenv: getenv, Log: errs, Out: &out, Version: "test",
	})
	code := cli.ExitCode(err, errs)
	return drilling{node, code, out.String(), errs.text.String()}
}

// place returns the names that a drill printed. The result "name" is the name of the drill's vhost
// and also of its user. The result "folder" is the drill's folder.
func (d *drilling) place(t *testing.T) (name, folder string) {
	t.Helper()
	m := regexp.MustCompile(`vhost \S+, user (dlo-drill-\w{10}), folder (\S+)`).FindStringSubmatch(d.errs)
	if m == nil {
		t.Fatalf("no vhost is named: %s", d.errs)
	}
	return m[1], m[2]
}

// checkRemoved checks that a drill has left no vhost, no user and no folder.
func (d *drilling) checkRemoved(t *testing.T) {
	t.Helper()
	name, folder := d.place(t)
	for _, kind := range []string{"vhosts", "users"} {
		if err := d.node.API(
			http.MethodGet, "/api/"+kind+"/"+name, nil, nil,
		); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("%s %s is left: %v", kind, name, err)
		}
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}

// TestADrill causes some failures, the fastest of each kind. The drill must remove everything that
// it created, even if it is interrupted. What a drill with --keep leaves must be removed by `dlo
// drill --clean`. TestTheWholeDrill causes all failures.
func TestADrill(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	t.Run("failures", func(t *testing.T) {
		names := []string{"inbox-deleted", "fails-for-ever", "renamed", "store-locked", "disk", "near-limit"}
		d := drill(t, node, "", "--only", strings.Join(names, ","))
		if n := strings.Count(d.out, "PASS  "); d.code != 0 || n != len(names) {
			t.Errorf("exit code %d\n%s%s", d.code, d.errs, d.out)
		}
		d.checkRemoved(t)
	})
	t.Run("it is ended", func(t *testing.T) {
		d := drill(t, node, "wave 1", "--only", "max-length", "--only", "renamed")
		if d.code != 1 || !strings.Contains(d.errs, "the drill was ended") || d.out != "" {
			t.Errorf("exit code %d\n%s%s", d.code, d.errs, d.out)
		}
		d.checkRemoved(t)
	})
	t.Run("what is left is cleaned", func(t *testing.T) {
		kept := drill(t, node, "", "--only", "store-locked", "--keep", "-o", "jsonl")
		name, folder := kept.place(t)
		defer os.RemoveAll(folder)
		if kept.code != 0 || !strings.Contains(kept.out, `"name":"store-locked"`) {
			t.Errorf("exit code %d\n%s%s", kept.code, kept.errs, kept.out)
		}
		offered := drill(t, node, "", "--only", "store-locked")
		if !strings.Contains(
			offered.errs, "left by earlier drills, or by one that is running: "+name+"; dlo drill --clean removes them",
		) {
			t.Errorf("it is not offered: %s", offered.errs)
		}
		if d := drill(t, node, "", "--clean"); d.code != 0 || d.out != "removed "+name+"\n" {
			t.Errorf("exit code %d\n%s%s", d.code, d.errs, d.out)
		}
		kept.checkRemoved(t)
	})
}

// TestADrillRefuses checks that a drill refuses unknown names, a vhost that is not empty, and a
// user who is not an administrator. Each time, it must create nothing.
func TestADrillRefuses(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := testenv.VHost(t)
	conn := publishParked(t, address, "orders", 1, nil)
	user, _ := node.User(t, vhost, "management")
	file := filepath.Join(t.TempDir(), "management")
	if err := os.WriteFile(file, []byte(node.ManagementURLOf(user+":secret")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"a vhost in use":       {[]string{"--vhost", vhost}, "has queues, for example orders"},
		"not an administrator": {[]string{"--management-file", file}, "rabbitmqctl add_vhost dlo-drill-"},
		"no such failure":      {[]string{"--only", "fire"}, "dlo drill --list has their names"},
		"no such broker":       {[]string{"--broker", "other"}, "there is no broker other"},
		"no such file":         {[]string{"--management-file", file + "x"}, "no such file"},
	} {
		if d := drill(
			t, node, "", c.args...,
		); d.code != 2 || !strings.Contains(d.errs, c.says) || d.out != "" || strings.Contains(d.errs, "folder") {
			t.Errorf("%s: exit code %d\n%s%s", name, d.code, d.errs, d.out)
		}
	}
	if n := ready(t, conn, "orders"); n != 1 {
		t.Errorf("%d messages are in the queue of others", n)
	}
}

// TestADrillWithoutAnAdministrator runs a drill in a vhost and as a user that somebody else
// created. The drill must skip the failures that need an administrator, and must leave the vhost
// empty.
func TestADrillWithoutAnAdministrator(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, _ := testenv.VHost(t)
	user, address := node.User(t, vhost, "policymaker")
	node.Grant(t, vhost, user, ".*", ".*", ".*")
	file := filepath.Join(t.TempDir(), "management")
	if err := os.WriteFile(file, []byte(node.ManagementURLOf(user+":secret")), 0o600); err != nil {
		t.Fatal(err)
	}
	d := drill(
		t, node, "", "--vhost", vhost, "--management-file", file, "--only", "inbox-deleted,operator-policy,rights",
	)
	if d.code != 3 || strings.Count(d.out, "PASS  ") != 1 || strings.Count(d.out, "it takes an administrator") != 2 {
		t.Errorf("exit code %d\n%s%s", d.code, d.errs, d.out)
	}
	var queues []struct{ Name string }
	if err := node.API(http.MethodGet, "/api/queues/"+vhost, nil, &queues); err != nil || len(queues) > 0 {
		t.Errorf("%v, left: %v", err, queues)
	}
	publishParked(t, address, "still", 1, nil) // works only while the user still exists and still has its rights
}

// TestTheWholeDrill causes every failure with the default settings, as an operator would. It uses
// its own broker, because TestADrill removes what other drills leave.
func TestTheWholeDrill(t *testing.T) {
	t.Parallel()
	testenv.Soak(t)
	d := drill(t, testenv.PrivateBroker(t), "")
	t.Log(d.out)
	if d.code != 0 || !strings.Contains(d.out, " 0 failed, 0 left out") {
		t.Errorf("exit code %d\n%s", d.code, d.errs)
	}
	d.checkRemoved(t)
}
