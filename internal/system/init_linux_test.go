package system

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sys/unix"

	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/server"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// typist types at a terminal, after it has read a question.
type typist struct {
	t       *testing.T
	master  *os.File
	slave   *os.File
	prompts *bufio.Reader // what dlo writes to standard error
	stderr  *os.File
}

var passwordQuestion = regexp.MustCompile(`Password of [^\n]*: $`)

// newTypist opens a terminal.
func newTypist(t *testing.T) *typist {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	prompts, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prompts.Close(); stderr.Close() })
	return &typist{t: t, master: master, slave: slave, prompts: bufio.NewReader(prompts), stderr: stderr}
}

// reads waits for the next question, and returns it.
func (y *typist) reads() string {
	question := ""
	for !strings.HasSuffix(question, "]: ") && !passwordQuestion.MatchString(question) {
		letter, _, err := y.prompts.ReadRune()
		if err != nil {
			y.t.Error(err)
			break
		}
		question += string(letter)
	}
	return question
}

// answers waits for a question and types an answer. It returns the question.
func (y *typist) answers(text string) string {
	question := y.reads()
	time.Sleep(20 * time.Millisecond) // the terminal no longer echoes a password
	if _, err := y.master.WriteString(text + "\n"); err != nil {
		y.t.Error(err)
	}
	return question
}

// initialize runs `dlo init`. Without a typist, there is no terminal.
func initialize(
	t *testing.T, ctx context.Context, env map[string]string, y *typist, args ...string,
) (code int, said, complained string) {
	t.Helper()
	var out, errs strings.Builder
	p := cli.Program{
		Ctx: ctx, Getenv: func(name string) string { return env[name] }, Stdin: strings.NewReader(""), Stdout: &out,
		Stderr: &errs, Version: "test", Check: server.Check, Explore: server.Explore,
	}
	if y != nil {
		p.Stdin, p.Stderr = y.slave, y.stderr
	}
	err := cli.Run(p, &commands{}, append([]string{"init"}, args...))
	code = cli.ExitCode(err, &errs)
	return code, out.String(), errs.String()
}

// TestTheFirstFile runs `dlo init` without a terminal and with one, and starts dlo with the file
// that it wrote, to the first letter. The password must not be in the configuration, and nobody but
// the user may read the files.
func TestTheFirstFile(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, _ := node.VHost(t)
	user, address := node.User(t, vhost, "management")
	const password = " p/w#d? " // with its spaces
	if err := node.API(http.MethodPut, "/api/users/"+url.PathEscape(user), map[string]string{
		"password": password, "tags": "management",
	}, nil); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	node.Grant(t, vhost, user, `.*`, `.*`, `.*`)
	conn, err := amqp.Dial(node.AMQPURL(vhost))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"orders", "emails"} {
		if _, err := ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	api := url.URL{
		Scheme: "http", Host: strings.TrimPrefix(node.ManagementURL(), "http://"),
		User: url.UserPassword(user, password),
	}
	env := map[string]string{"DLO_MANAGEMENT_URL": api.String()}
	found := []string{
		"RabbitMQ " + node.Version() + ", user " + user, "2 of 2 queues will drop what their consumers reject.",
		"policy dlo", "  orders\n", "dead-letter-exchange", "dlo serve ", "dlo try", "dlo topology apply",
	}

	dir := t.TempDir()
	p := newChild(t, address, "")
	if err := os.Remove(p.config); err != nil {
		t.Fatal(err)
	}
	code, out, errs := initialize(t, t.Context(), env, nil, "--broker", u.String(), "--out", p.config, "--yes")
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	y := newTypist(t)
	var asked []string
	typed := make(chan struct{})
	byHand := filepath.Join(dir, "by hand.yaml")
	go func() {
		defer close(typed)
		u.User = url.User(user)
		for _, text := range []string{u.String(), password, "-", p.config, "y"} {
			asked = append(asked, y.answers(text))
		}
	}()
	code, interactive, errs := initialize(t, t.Context(), env, y, "--out", byHand)
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, interactive, errs)
	}
	<-typed
	if all := strings.Join(asked, ""); !strings.HasPrefix(all, "URL of the broker [amqp:") ||
		!strings.Contains(all, "Password of "+user) || !strings.Contains(all, "init writes a file") ||
		!strings.Contains(all, p.config+" exists") {
		t.Errorf("asked %q", all)
	}
	for _, text := range []string{out, interactive} {
		for _, want := range found {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in:\n%s", want, text)
			}
		}
		if strings.Contains(text, "p/w") || strings.Contains(text, "p%2Fw") {
			t.Errorf("the password is shown:\n%s", text)
		}
	}
	for file, want := range map[string]string{
		p.config: "management: ${DLO_MANAGEMENT_URL}\n", byHand: "password_file: ",
		strings.TrimSuffix(p.config, "yaml") + "password": password + "\n",
		filepath.Join(dir, "by hand.password"):            password + "\n",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(string(text), want) ||
			strings.HasSuffix(file, ".yaml") && strings.Contains(string(text), "p/w") {
			t.Errorf("%s: %v\n%s", file, info.Mode(), text)
		}
	}
	if !strings.Contains(interactive, "dlo serve '"+byHand+"'\n") || strings.Contains(interactive, "unset") {
		t.Errorf("the next step is wrong:\n%s", interactive)
	}
	if strings.Contains(out, "more line") {
		t.Errorf("a short plan is cut:\n%s", out)
	}
	for n := range 40 {
		if _, err := ch.QueueDeclare(fmt.Sprintf("queue-%d", n), true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	env["DLO_AMQP_URL"] = u.String() // the same broker, without the password
	u.User = url.UserPassword(user, password)
	_, long, errs := initialize(
		t, t.Context(), env, nil, "--broker", u.String(), "--out", filepath.Join(dir, "long.yaml"), "--yes",
	)
	if !strings.Contains(long, "more lines: dlo topology plan shows all of them") || strings.Contains(long, "unset") {
		t.Errorf("a plan for 42 queues:\n%s%s", long, errs)
	}
	for _, other := range []string{"amqp://elsewhere", "nonsense"} {
		env := map[string]string{"DLO_AMQP_URL": other}
		file := filepath.Join(dir, other[:4]+".yaml")
		_, said, errs := initialize(t, t.Context(), env, nil, "--broker", node.AMQPURL(vhost), "--out", file, "--yes")
		if !strings.Contains(said, "unset DLO_AMQP_URL") {
			t.Errorf("DLO_AMQP_URL is %s:\n%s%s", other, said, errs)
		}
	}

	p.env = []string{"DLO_LISTEN=127.0.0.1:0", "DLO_STORE=" + p.store, "DLO_MANAGEMENT_URL=" + api.String()}
	p.Start("")
	p.Draining()
	if _, err := config.Load(byHand, func(name string) string { return env[name] }); err != nil {
		t.Error(err)
	}
	if tried, _ := p.dlo(t.Context(), 0, "", "try"); !strings.Contains(tried, "arrived") {
		t.Error(tried)
	}
}

// TestNoFirstFile runs `dlo init` where it cannot write a file. It must say what to do, and must
// leave no file.
func TestNoFirstFile(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	_, poor := node.User(t, vhost, "")
	dir := t.TempDir()
	there, out := filepath.Join(dir, "there.yaml"), filepath.Join(dir, "dlo.yaml")
	if err := os.WriteFile(there, []byte("listen: 127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		broker, out string
		code        int
		want        string
	}{
		"a file":           {"amqp://127.0.0.1:1/", there, 2, "init overwrites nothing: name another file"},
		"standard output":  {address, "-", 2, "init writes a file"},
		"no URL":           {"localhost", out, 2, "give a URL with the scheme amqp or amqps"},
		"a parameter":      {"amqp://a:b@h/?heartbeat=9", out, 2, "leave it out"},
		"no folder":        {address, filepath.Join(dir, "no", "dlo.yaml"), 1, "no such file or directory"},
		"nobody there":     {"amqp://127.0.0.1:1/", out, 1, "check the user, the password and the address"},
		"a wrong password": {strings.Replace(poor, "secret", "wrong", 1), out, 1, "the broker refused user or password"},
		"no TLS":           {strings.Replace(address, "amqp:", "amqps:", 1), out, 1, "tls: first record"},
	} {
		code, said, errs := initialize(t, t.Context(), nil, nil, "--broker", c.broker, "--out", c.out, "--yes")
		if code != c.code || !strings.Contains(errs, c.want) || strings.Contains(said+errs, "wrong@") {
			t.Errorf("%s: exit code %d\n%s%s", name, code, said, errs)
		}
	}
	if code, _, errs := initialize(t, t.Context(), nil, nil); code != 2 ||
		!strings.Contains(errs, "init needs --yes when there is no terminal to ask on") {
		t.Errorf("without a terminal: exit code %d\n%s", code, errs)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	y := newTypist(t)
	go func() {
		y.answers(address)
		y.reads()
		interrupt()
	}()
	code, _, errs := initialize(t, ctx, nil, y, "--out", out)
	if code != 1 || !strings.Contains(errs, "nothing was done") {
		t.Errorf("interrupted: exit code %d\n%s", code, errs)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("there are files: %v %v", files, err)
	}

	var said string
	code, said, errs = initialize(t, t.Context(), nil, nil, "--broker", poor, "--out", out, "--yes")
	for _, want := range []string{
		"rabbitmqctl set_permissions", "are not known", "rabbitmqctl set_user_tags replaces them all",
		"dlo cannot declare its exchange and its queues before",
	} {
		if code != 3 || !strings.Contains(said, want) {
			t.Errorf("without rights: exit code %d, no %q\n%s%s", code, want, said, errs)
		}
	}

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, interrupt = context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		code, _, _ := initialize(t, ctx, nil, nil, "--broker", "amqp://"+silent.Addr().String(), "--out", out+"2", "--yes")
		ended <- code
	}()
	if _, err := silent.Accept(); err != nil {
		t.Fatal(err)
	}
	interrupt()
	select {
	case code := <-ended:
		if code == 0 {
			t.Error("interrupted during the handshake: exit code 0")
		}
	case <-time.After(20 * time.Second): // less than a handshake may take
		t.Error("an interrupt does not end the handshake")
	}
}
