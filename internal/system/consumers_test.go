package system

import (
	"encoding/json"
	"fmt"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// language describes how to run one of the consumer programs in docs/consumers.md.
type language struct {
	file     string
	required bool   // with DLO_TEST_REQUIRE=1, the test fails if the language is not installed
	install  string // command that installs what the program needs
	stack    bool   // its errors contain a stack
	// command returns the command that runs the program. If another program is missing, the error
	// names it. The folder "dir" belongs to the test and contains the source file of the program.
	command func(t *testing.T, dir string) (*exec.Cmd, error)
}

const (
	nodeModules = "../../.cache/consumers/node_modules"
	phpAutoload = "/usr/share/php/PhpAmqpLib/autoload.php"
	javaClasses = "/usr/share/java/amqp-client.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/jackson-databind.jar:/usr/share/java/jackson-core.jar:/usr/share/java/jackson-annotations.jar"
)

var languages = []language{
	{"consumer.go", true, "", false, func(t *testing.T, dir string) (*exec.Cmd, error) {
		built := filepath.Join(dir, "consumer")
		if out, err := exec.Command(
			"go", "build", "-trimpath", "-o", built, filepath.Join(dir, "consumer.go"),
		).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return exec.Command(built), nil
	}},
	{
		"consumer.js", true, ".ci/install nodejs npm && .ci/consumers", true,
		func(t *testing.T, dir string) (*exec.Cmd, error) {
			modules, err := filepath.Abs(nodeModules)
			if err == nil {
				_, err = os.Stat(filepath.Join(modules, "amqplib"))
			}
			if err != nil {
				return nil, err
			}
			cmd := exec.Command("node", filepath.Join(dir, "consumer.js"))
			cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
			return cmd, look("node")
		},
	},
	{"consumer.py", true, ".ci/install python3-pika", true, func(t *testing.T, dir string) (*exec.Cmd, error) {
		var err error
		// the system package of pika works only with the system's Python
		for _, python := range []string{"python3", "/usr/bin/python3"} {
			if err = exec.Command(python, "-c", "import pika").Run(); err == nil {
				return exec.Command(python, filepath.Join(dir, "consumer.py")), nil
			}
		}
		return nil, err
	}},
	{"consumer.php", true, ".ci/install php-cli php-amqplib", true, func(t *testing.T, dir string) (*exec.Cmd, error) {
		if _, err := os.Stat(phpAutoload); err != nil {
			return nil, err
		}
		cmd := exec.Command("php", filepath.Join(dir, "consumer.php"))
		cmd.Env = append(os.Environ(), "AUTOLOAD="+phpAutoload)
		return cmd, look("php")
	}},
	{"consumer.rb", false, "apt-get install ruby-bunny", true, func(t *testing.T, dir string) (*exec.Cmd, error) {
		return exec.Command(
			"ruby", filepath.Join(dir, "consumer.rb"),
		), exec.Command("ruby", "-e", "require 'bunny'").Run()
	}},
	{
		"Consumer.java", false,
		"apt-get install default-jdk-headless librabbitmq-client-java libjackson2-databind-java", true,
		func(t *testing.T, dir string) (*exec.Cmd, error) {
			for jar := range strings.SplitSeq(javaClasses, ":") {
				if _, err := os.Stat(jar); err != nil {
					return nil, err
				}
			}
			if err := look("javac"); err != nil {
				return nil, err
			}
			if out, err := exec.Command(
				"javac", "-cp", javaClasses, "-d", dir, filepath.Join(dir, "Consumer.java"),
			).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			return exec.Command("java", "-cp", dir+":"+javaClasses, "Consumer"), nil
		},
	},
}

func look(program string) error {
	_, err := exec.LookPath(program)
	return err
}

var block = regexp.MustCompile("(?ms)^```\\w+ (\\S+)\n(.*?)^```$")

// TestTheConsumersOfTheDocumentation runs the programs of docs/consumers.md exactly as printed.
// Messages that they handle must be acknowledged. Messages that they reject must become letters
// with the reason of the rejection, even when a letter comes back.
func TestTheConsumersOfTheDocumentation(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	text, err := os.ReadFile("../../docs/consumers.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{}
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		programs[m[1]] = m[2]
	}
	vhost, url := testenv.VHost(t)
	if err := node.API("PUT", "/api/users/mute", map[string]string{"password": "mute", "tags": ""}, nil); err != nil {
		t.Fatal(err)
	}
	if err := node.API("PUT", "/api/permissions/"+neturl.PathEscape(vhost)+"/mute", map[string]string{
		"configure": "", "write": "", "read": ".*",
	}, nil); err != nil {
		t.Fatal(err)
	}
	p := serve(t, url, "default: {retry: {delays: [100ms]}}\nrequeue: {rate: 0, watch: 1s}\n", nil).child
	p.Draining()
	for _, l := range languages {
		t.Run(l.file, func(t *testing.T) {
			t.Parallel()
			l.run(t, p, url, programs[l.file])
		})
	}
	for _, file := range []string{"consumer.exs", "Consumer.cs"} {
		if programs[file] == "" {
			t.Errorf("there is no %s", file)
		}
	}
}

func (l *language) run(t *testing.T, p *child, url, program string) {
	dir := t.TempDir()
	if program == "" {
		t.Fatal("the documentation does not have it")
	}
	if err := os.WriteFile(filepath.Join(dir, l.file), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, err := l.command(t, dir)
	if err != nil && l.required && os.Getenv("DLO_TEST_REQUIRE") == "1" {
		t.Fatalf("%v; to install what is missing: %s", err, l.install)
	}
	if err != nil {
		t.Skipf("%v; to install what is missing: %s", err, l.install)
	}
	queue := "orders " + l.file
	a := newAudit(t, url, queue, nil)
	a.awaitAnnotationsQueue()
	stop := l.start(t, cmd, a.conn, url, queue)

	bodies := []string{`{"id": 1, "tenant": "acme"}`, `{"id": 7}`, `{"id": 8}`}
	// the last message has no id
	a.publish(len(bodies), func(i int) (string, string) {
		return bodies[i], []string{
			"good " + l.file, "bad " + l.file, "",
		}[i]
	})
	eventually(t, "both letters died twice, and say why", func() bool {
		return p.count(`letters l JOIN origins o ON o.id = l.origin
			JOIN annotations n ON n.id = l.annotation`, `o.queue = $1 AND l.state = 'dead' AND l.attempts = 1
				AND n.token <> '' AND l.error <> ''`, queue) == 2
	})
	stop()
	eventually(
		t, "nothing is left in the queue",
		func() bool { return consumers(t, a.conn, queue) == 0 && ready(t, a.conn, queue) == 0 },
	)
	if n := p.count(`letters l JOIN origins o ON o.id = l.origin`, `o.queue = $1`, queue); n != 2 {
		t.Errorf("%d letters of two messages that were rejected", n)
	}
	for _, id := range p.ids(`SELECT l.id, l.random FROM letters l JOIN origins o ON o.id = l.origin
		WHERE o.queue = $1`, queue) {
		var letter struct {
			Body    []byte            `json:"body"`
			Error   string            `json:"error"`
			Failure map[string]string `json:"failure"`
			History []struct {
				Kind, Detail string
			} `json:"history"`
		}
		_, answer := p.get("/api/v1/letters/" + string(id))
		if err := json.Unmarshal([]byte(answer), &letter); err != nil {
			t.Fatal(err, answer)
		}
		var order struct{ ID int }
		json.Unmarshal(letter.Body, &order)
		want := fmt.Sprintf("order %d has no tenant", order.ID)
		f := letter.Failure
		if f["service"] != "order-worker" || f["version"] != "2026.11.20-1" || f["message"] != want ||
			f["type"] == "" || (f["stack"] != "") != l.stack || !strings.Contains(
			letter.Error, want,
		) {
			t.Errorf("order %d: error %q, %v", order.ID, letter.Error, f)
		}
		said := 0
		for _, e := range letter.History {
			if e.Kind == "annotated" && e.Detail == "reported by order-worker 2026.11.20-1" {
				said++
			}
		}
		if said != 2 {
			t.Errorf("order %d: its history says %d times who reported it: %v", order.ID, said, letter.History)
		}
	}

	// If the program may not publish annotations, it must still reject messages, and must not end.
	stop = l.start(t, cmd, a.conn, strings.Replace(url, "guest:guest", "mute:mute", 1), queue)
	a.publish(2, func(i int) (string, string) { return fmt.Sprintf(`{"id": %d}`, 10+i), "" })
	eventually(t, "two letters without a word", func() bool {
		return p.count(`letters l JOIN origins o ON o.id = l.origin`, `o.queue = $1 AND l.state = 'dead'
			AND l.attempts = 1 AND l.annotation = 0`, queue) == 2
	})
	stop()
}

// start runs the program until the returned function "stop" is called. If the program ends before
// it consumes, start runs it again, as a supervisor would do. That is necessary because php-amqplib
// waits at most 3 s for a connection. If the program ends after it has begun to consume, the test
// fails.
func (l *language) start(t *testing.T, program *exec.Cmd, conn *amqp.Connection, url, queue string) (stop func()) {
	t.Helper()
	env := program.Env
	if env == nil {
		env = os.Environ()
	}
	env = append(env[:len(env):len(env)], "AMQP_URL="+url, "QUEUE="+queue)
	var out output
	var cmd *exec.Cmd
	var ended chan error
	running := false
	t.Cleanup(func() {
		if running {
			cmd.Process.Kill()
		}
		if t.Failed() {
			t.Logf("it says:\n%s", out.String())
		}
	})
	eventually(t, "it consumes", func() bool {
		if !running {
			cmd = exec.Command(program.Path, program.Args[1:]...)
			cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &out
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			running, ended = true, make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
		}
		select {
		case <-ended:
			running = false
		default:
		}
		return running && consumers(t, conn, queue) == 1
	})
	return func() {
		running = false
		select {
		case err := <-ended:
			t.Errorf("it ended by itself: %v", err)
		default:
			cmd.Process.Kill()
			<-ended
		}
	}
}

// consumers returns how many consumers a queue has. It asks the broker with a passive declare.
func consumers(t testing.TB, conn *amqp.Connection, queue string) int {
	t.Helper()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q.Consumers
}

// output collects what a program prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
