package system

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/server"
	"github.com/deadletteroffice/dlo/internal/testenv"
	_ "modernc.org/sqlite"
)

// The test binary is also the program under test. If DLO_TEST_RUN is set, it runs dlo. If
// DLO_TEST_CRASH is set too, dlo kills itself with SIGKILL when it reaches a named point for the
// n-th time.
const (
	runVariable = "DLO_TEST_RUN" // arguments of dlo, as a JSON list
	// point=n, or point=path; with a path, dlo waits at the point until the file exists
	crashVariable = "DLO_TEST_CRASH"
	drainVariable = "DLO_TEST_DRAIN" // a drain request, as JSON
)

// commands is the command line of cmd/dlo.
type commands struct {
	Serve server.Serve `cmd:""`
	Leave server.Leave `cmd:""`
}

// process runs dlo as the main function of cmd/dlo does. At its crash points, dlo calls the
// function "crash".
func process(args []string, crash func(point string)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	program := cli.Program{
		Ctx: ctx, Getenv: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: "test",
		Check: server.Check, Ask: server.Ask, Tokens: openTokens, Rename: server.RenameBroker,
		Backups: server.Backups{Version: "test"},
	}
	return cli.ExitCode(cli.Run(program, &commands{}, args, server.Options{
		Getenv: os.Getenv, Log: os.Stderr, Out: os.Stdout, Version: "test", Crash: crash,
	}), os.Stderr)
}

func TestMain(m *testing.M) {
	if args := os.Getenv(runVariable); args != "" {
		var list []string
		if err := json.Unmarshal([]byte(args), &list); err != nil {
			panic(err)
		}
		if request := os.Getenv(drainVariable); request != "" {
			os.Exit(drainingProcess(list, crashAt(os.Getenv(crashVariable)), request))
		}
		os.Exit(process(list, crashAt(os.Getenv(crashVariable))))
	}
	os.Exit(testenv.Main(m))
}

func noEnvironment(string) string { return "" }

// crashAt returns the function that dlo calls at its crash points. With point=n, the function kills
// the process at the n-th call for that point. With point=path, it waits at that point until the
// file exists.
func crashAt(spec string) func(string) {
	point, times, ok := strings.Cut(spec, "=")
	if !ok {
		return nil
	}
	if filepath.IsAbs(times) {
		return func(at string) {
			for at == point {
				if _, err := os.Stat(times); err == nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	n, err := strconv.ParseInt(times, 10, 64)
	if err != nil {
		panic(err)
	}
	var hits atomic.Int64
	return func(at string) {
		if at == point && hits.Add(1) == n {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

// child is a dlo that runs as a separate process. Its store and its configuration are in a folder
// of the test.
type child struct {
	t      testing.TB
	dir    string
	amqp   string
	config string
	store  string
	url    string // URL of the pages, once dlo is ready
	env    []string
	flags  []string // further flags of dlo serve
	copied bool     // true if the test replaces the store or removes its notes, so that storeDoubts are expected
	cmd    *exec.Cmd
	opened sync.Once
	db     *sql.DB // the store's file, opened by the method file
	mu     sync.Mutex
	log    strings.Builder
	ended  chan struct{}
	code   int
}

// newChild writes the configuration of a dlo and does not start it. In the configuration, %AMQP%
// stands for the broker's URL.
func newChild(t testing.TB, amqpURL, config string) *child {
	t.Helper()
	if testing.Short() {
		t.Skip("short: it takes a whole program")
	}
	dir := t.TempDir()
	p := &child{
		t: t, dir: dir, amqp: amqpURL, config: filepath.Join(dir, "dlo.yaml"), store: filepath.Join(dir, "dlo.db"),
	}
	p.Configure(config)
	t.Cleanup(func() {
		if p.cmd != nil {
			p.Kill9()
		}
		for _, doubt := range storeDoubts {
			if !p.copied && strings.Contains(p.Log(), doubt) {
				t.Errorf("dlo takes its store for another one: %s", doubt)
			}
		}
		if t.Failed() {
			t.Log(p.Log())
			t.Log(p.leftBehind())
		}
	})
	return p
}

// storeDoubts are messages that dlo logs if its store is older than its notes, or if nothing proves
// that the store is current. They must not appear after a kill of dlo or the broker, or after a
// lost connection.
var storeDoubts = []string{
	"the store was restored from a copy", "the broker is older than its last confirm",
	"nothing proves that this store is not an older copy",
}

var readyURL = regexp.MustCompile(`msg="dlo is ready".* url=(\S+)`)

// Configure writes a new configuration file. dlo reads it at the next start or SIGHUP.
func (p *child) Configure(config string) {
	p.t.Helper()
	text := fmt.Sprintf("listen: 127.0.0.1:0\nstore: %s\nbrokers: [{url: %q}]\n%s", p.store, p.amqp, config)
	if strings.Contains(config, "brokers:") {
		text = fmt.Sprintf("listen: 127.0.0.1:0\nstore: %s\n%s", p.store, strings.ReplaceAll(config, "%AMQP%", p.amqp))
	}
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Hangup sends SIGHUP, which reloads the configuration.
func (p *child) Hangup() { p.cmd.Process.Signal(syscall.SIGHUP) }

// Start starts dlo and waits until it is ready. The parameter "crash" names a crash point as
// point=n. If it is "", dlo does not kill itself. If dlo goes on with an operation, it may reach
// the crash point before it is ready.
func (p *child) Start(crash string) {
	p.t.Helper()
	defer logWait(p.t, "dlo is ready")()
	ready := p.start(crash)
	select {
	case p.url = <-ready:
	case <-p.ended:
		if crash == "" || p.code != -1 { // not ended by a signal
			p.t.Fatalf("dlo ended before it was ready\n%s", p.Log())
		}
	case <-time.After(60 * time.Second):
		p.t.Fatalf("dlo is not ready\n%s", p.Log())
	}
}

// Draining waits until dlo has declared and opened all its inboxes. Messages that were rejected
// before are lost.
func (p *child) Draining() {
	p.t.Helper()
	eventually(p.t, "all inboxes are open", func() bool {
		_, s := p.ready()
		return !slices.ContainsFunc(s.Brokers, func(b saidOfBroker) bool { return !b.draining() })
	})
}

// Waiting waits until dlo can let letters wait in queues of the broker. Before that, letters wait
// in the store.
func (p *child) Waiting() {
	p.t.Helper()
	eventually(
		p.t, "letters can wait in the broker",
		func() bool { return strings.Contains(p.Log(), `msg="letters can wait in the broker"`) },
	)
}

func (p *child) start(crash string) chan string {
	p.t.Helper()
	args, _ := json.Marshal(append([]string{"serve", "--config", p.config}, p.flags...))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), runVariable+"="+string(args), crashVariable+"="+crash)
	cmd.Env = append(cmd.Env, p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdout = os.Stderr
	out, err := cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ready, ended := make(chan string, 1), make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.mu.Lock()
			p.log.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if m := readyURL.FindStringSubmatch(lines.Text()); m != nil {
				ready <- m[1]
			}
		}
		cmd.Wait()
		p.code = cmd.ProcessState.ExitCode()
		close(ended)
	}()
	return ready
}

// Crashed waits until the process has killed itself. The parameter "what" describes the crash.
func (p *child) Crashed(what string) {
	p.t.Helper()
	eventually(p.t, what, func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
}

// Kill9 kills the process with SIGKILL and waits until it has ended.
func (p *child) Kill9() {
	p.cmd.Process.Kill()
	<-p.ended
}

// Stop stops dlo with SIGTERM and returns its exit code.
func (p *child) Stop() int {
	p.t.Helper()
	defer logWait(p.t, "dlo has stopped")()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(60 * time.Second):
		p.t.Fatalf("dlo does not stop\n%s", p.Log())
	}
	return p.code
}

func (p *child) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// get requests a path from dlo and returns the status and the body of the response.
func (p *child) get(path string) (int, string) {
	p.t.Helper()
	answer, err := http.Get(p.url + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// post sends a value as JSON to the API and returns the status and the body of the response.
func (p *child) post(path string, body any) (int, string) {
	p.t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.Post(p.url+path, "application/json", bytes.NewReader(encoded))
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if answer.StatusCode >= 500 {
		p.t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
	}
	return answer.StatusCode, string(text)
}

// requeueAtOnce returns the request for an operation that requeues all given letters immediately.
// The operation cannot be undone, does not try a few letters first, and does not stop
// automatically.
func requeueAtOnce(ids []deadletter.ID) map[string]any {
	return map[string]any{
		"action": "requeue", "ids": ids, "reason": "the fix is out", "hold": "0s", "canary": 0, "rate": 100000,
		"stop_at": 0,
	}
}

// tryPost sends a value as JSON to the API. It ignores errors, because dlo may be killed during the
// request.
func (p *child) tryPost(path string, body any) {
	p.t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	if answer, err := http.Post(p.url+path, "application/json", bytes.NewReader(encoded)); err == nil {
		answer.Body.Close()
	}
}

// ids returns the ids of letters. The query must select the serial and the random bits of each
// letter.
func (p *child) ids(query string, args ...any) []deadletter.ID {
	p.t.Helper()
	var ids []deadletter.ID
	p.rows(query, args, func(rows *sql.Rows) error {
		var serial, random int64
		err := rows.Scan(&serial, &random)
		ids = append(ids, deadletter.NewID(serial, uint64(random)))
		return err
	})
	return ids
}

// rows runs a query on the store's file and calls the function "scan" for each row.
func (p *child) rows(query string, args []any, scan func(*sql.Rows) error) {
	p.t.Helper()
	rows, err := p.file().Query(query, args...)
	if err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		p.t.Fatal(err)
	}
}

// file returns the store's file, opened read-only and without the program. It closes a connection
// that is unused for a second.
func (p *child) file() *sql.DB {
	p.t.Helper()
	p.opened.Do(func() {
		db, err := sql.Open("sqlite", "file:"+p.store+"?mode=ro&_pragma=busy_timeout(10000)")
		if err != nil {
			p.t.Fatal(err)
		}
		db.SetConnMaxIdleTime(time.Second)
		p.t.Cleanup(func() { db.Close() })
		p.db = db
	})
	return p.db
}

// cpu returns the processor time that dlo has used, user and system together. If dlo was not
// started, it returns 0.
func (p *child) cpu() time.Duration {
	p.t.Helper()
	if p.cmd == nil {
		return 0
	}
	used, err := testenv.CPU(p.cmd.Process.Pid)
	if err != nil {
		p.t.Fatal(err)
	}
	return used
}

// ask runs a query on the store's file and returns the one number that it selects.
func (p *child) ask(query string, args ...any) int {
	p.t.Helper()
	var n int
	if err := p.file().QueryRow(query, args...).Scan(&n); err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// eventually waits until the function "done" returns true. The text "what" describes the condition.
// After 4 minutes, or after an hour in a soak test, eventually fails the test.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	limit := 4 * time.Minute // generous for a busy machine, because it only ends waits without hope
	if soak() {
		limit = time.Hour
	}
	within(t, limit, what, done)
}

// within waits until the function "done" returns true. If that takes longer than the given limit,
// within fails the test. The longer it waits, the less often it calls "done", because each call
// takes processor time from the parallel tests.
func within(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	defer logWait(t, what)()
	for began := time.Now(); time.Since(began) < limit; time.Sleep(min(max(20*time.Millisecond, time.Since(began)/10), 500*time.Millisecond)) {
		if done() {
			return
		}
	}
	t.Fatalf("waited in vain: %s", what)
}

// logWait returns a function that logs how long the test has waited. It logs only waits of more
// than a second, so that go test -v shows where time is spent.
func logWait(t testing.TB, what string) func() {
	began := time.Now()
	return func() {
		t.Helper()
		if d := time.Since(began); d > time.Second {
			t.Logf("waited %.1f s: %s", d.Seconds(), what)
		}
	}
}

// seeded returns a source of random numbers. It logs its seed, which DLO_TEST_SEED can set.
func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("DLO_TEST_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("DLO_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// restart restarts a broker that was killed.
func restart(t testing.TB, node *testenv.Node) {
	t.Helper()
	defer logWait(t, "the broker is there again")()
	if err := node.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// openTokens opens the tokens of a store, as the function openTokens of cmd/dlo does.
func openTokens(ctx context.Context, store string) (cli.TokenFile, error) {
	return server.Tokens(ctx, store)
}
