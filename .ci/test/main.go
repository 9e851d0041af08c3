// Command test runs the tests of one tier. The environment variable DLO_TEST names the tier:
//
//	go run ./.ci/test                  the tests of make test: all that testenv.Full does not mark
//	DLO_TEST=rest go run ./.ci/test    the others: those that testenv.Full marks
//	DLO_TEST=full go run ./.ci/test    all tests, almost everywhere with the race detector
//
// It prints a line for each package that ends, and the output of each test that fails. The last
// line has the number of tests by what became of them, and the processor time of the tests and of
// everything that they start, such as brokers and browsers. The processor time of builds is apart.
//
// With DLO_TEST_REQUIRE=1, as in make test, a test that is skipped for an unexpected reason is a
// failure. A broker or a browser that is missing therefore never makes the run green.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	module = "github.com/deadletteroffice/dlo/"
	// timeout is the time limit for the tests of one package. On a busy machine, one package once
	// took 20 minutes.
	timeout = "-timeout=45m"
	// garbage is the GOGC of the tests and of the programs that they start. Because their heaps are
	// small, they can grow more between collections. With this value, the tests of internal/store
	// took 12 % less processor time than with the default.
	garbage = "400"
)

var (
	// modules is the list of the folders that are modules of their own. All their tests are in
	// test-full.
	modules = []string{"internal/payload/corpus", "internal/topology/forms", "web/clients"}
	// waiting is the list of the packages whose tests start whole programs or brokers, and wait for
	// them most of the time. Each of the two lists keeps one lane busy.
	waiting = [][]string{{"internal/system"}, {"internal/rabbitmq", "internal/testenv", "cmd/demo"}}
	// long is the list of the other packages whose tests need the most processor time. They start
	// first, so that the lanes end at about the same time.
	long = []string{"web/view", "internal/store", "web", "internal/payload"}
	// raced is the list of the packages whose goroutines meet. Their tests run with the race detector
	// in each tier.
	raced = []string{
		"internal/ingest", "internal/drain", "internal/classify", "internal/requeue", "internal/operation", "internal/notify",
		"internal/survey", "internal/schemas", "internal/rabbitmq", "internal/server",
	}
	// partly says which tests of further packages run with the race detector in make test.
	partly = map[string]string{
		"internal/store": "TheUrgentGoFirst|WhoGivesUpWaiting|EachQueueHasItsTurn|WidensNoScope|DuringARequest",
		"web":            "Stream|UploadsHinder|ASlowListEnds|NobodyTakesAllLists|ListsLeaveReaders|Limits|AtTheSameTime|DuringAR",
	}
	// watching is the list of the packages that never run with the race detector, because their tests
	// watch other programs.
	watching = []string{"internal/system", "internal/testenv", "cmd/demo", "web/view"}
)

var (
	inFull  = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\t(?:testenv\.)?Full\(t\)$`)
	unraced = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n(?:\t.*\n){0,3}\tpayloadtest\.Unraced\(t\)$`)
	anyTest = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
)

// pkg is a package with tests.
type pkg struct {
	Dir, ImportPath           string
	TestGoFiles, XTestGoFiles []string
	module, name              string // the folders of the module and of the package
	tests, full, unraced      []string
}

// job is one run of go test.
type job struct {
	folder string
	args   []string
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "run" {
		os.Exit(runCounted(os.Args[2:]))
	}
	began, tier := time.Now(), os.Getenv("DLO_TEST")
	packages, err := list()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	r := &results{tests: map[string]string{}, reasons: map[string]string{}, latest: map[string]string{}}
	own, shared := jobs(packages, tier, canRace())
	rest := make(chan job, len(shared))
	for _, j := range shared {
		rest <- j
	}
	close(rest)
	var lanes sync.WaitGroup
	for _, first := range append(own, nil) {
		lanes.Go(func() {
			for _, j := range first {
				r.run(j)
			}
			for j := range rest {
				r.run(j)
			}
		})
	}
	lanes.Wait()
	for _, text := range r.unexpected {
		fmt.Println("skipped, although make test requires it:", text)
	}
	fmt.Println(r.line(packages, tier, time.Since(began)))
	if r.failed || len(r.unexpected) > 0 {
		os.Exit(1)
	}
}

// list returns all packages with tests, and reads from their files which tests they have.
func list() (packages []*pkg, err error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for _, folder := range append([]string{"."}, modules...) {
		cmd := exec.Command("go", "list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles", "./...")
		cmd.Dir, cmd.Stderr = folder, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", folder, err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			p := &pkg{module: folder}
			if err := d.Decode(p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			files := append(p.TestGoFiles, p.XTestGoFiles...)
			if len(files) == 0 {
				continue
			}
			if p.name, err = filepath.Rel(here, p.Dir); err != nil {
				return nil, err
			}
			for _, file := range files {
				text, err := os.ReadFile(filepath.Join(p.Dir, file))
				if err != nil {
					return nil, err
				}
				p.tests, p.full, p.unraced = append(p.tests, names(anyTest, text)...), append(p.full, names(inFull, text)...), append(p.unraced, names(unraced, text)...)
			}
			p.tests = slices.DeleteFunc(p.tests, func(name string) bool { return name == "TestMain" })
			if folder != "." {
				p.full = p.tests
			}
			packages = append(packages, p)
		}
	}
	return packages, nil
}

func names(pattern *regexp.Regexp, text []byte) (found []string) {
	for _, m := range pattern.FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	return found
}

// jobs returns the runs of go test of a tier. Each lane has runs of its own, which wait most of the
// time. The shared runs keep a processor busy; each lane that is free takes the next one. No test
// runs twice.
func jobs(packages []*pkg, tier string, canRace bool) (own [][]job, shared []job) {
	own = make([][]job, len(waiting))
	order := func(p *pkg) int { return (slices.Index(long, p.name) + len(long) + 1) % (len(long) + 1) }
	slices.SortStableFunc(packages, func(a, b *pkg) int { return order(a) - order(b) })
	for _, p := range packages {
		add := func(race bool, flags ...string) {
			if race {
				flags = append(flags, "-race", "-gcflags=modernc.org/...=-race=false") // SQLite, translated to Go: four times as slow with it, and not ours
			}
			for i, lane := range waiting {
				if slices.Contains(lane, p.name) {
					own[i] = append(own[i], job{p.module, append(flags, "-parallel="+strconv.Itoa(6-3*i), p.ImportPath)})
					return
				}
			}
			shared = append(shared, job{p.module, append(flags, p.ImportPath)})
		}
		race := canRace && (slices.Contains(raced, p.name) || tier == "full" && !slices.Contains(watching, p.name))
		switch {
		case tier == "" && p.module != ".", tier == "rest" && len(p.full) == 0:
		case tier == "rest":
			add(race, exactly(p.full))
		case tier == "" && canRace && partly[p.name] != "":
			add(true, "-run="+partly[p.name])
			add(false, "-skip="+partly[p.name])
		case race && len(p.unraced) > 0:
			add(true)
			add(false, exactly(p.unraced))
		default:
			add(race)
		}
	}
	return own, shared
}

// exactly returns the flag with which go test runs only these tests.
func exactly(tests []string) string { return "-run=^(" + strings.Join(tests, "|") + ")$" }

// canRace reports whether the race detector works on this machine. It needs cgo, and cgo needs a C
// compiler.
func canRace() bool {
	out, err := exec.Command("go", "env", "CGO_ENABLED", "CC").Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 2 || fields[0] != "1" {
		return false
	}
	_, err = exec.LookPath(fields[1])
	return err == nil
}

// results contains the results of all tests. Several lanes, which run tests at the same time, add
// to it.
type results struct {
	mu        sync.Mutex
	tests     map[string]string // "pass", "fail" or "skip" by the package and the name of a top-level test
	reasons   map[string]string // why a test was skipped
	processor float64           // seconds that the tests and their descendants used
	failed    bool

	latest     map[string]string // the latest message by the package and the name of a test or subtest
	unexpected []string          // the tests that were skipped although DLO_TEST_REQUIRE forbids it
}

// expected is a pattern for the reasons why a test may be skipped in `make test`. Such a test is in
// another tier, runs in another job, or needs root. Or it is for another version of RabbitMQ or
// another operating system.
var expected = regexp.MustCompile(`^in (test-full|soak|bench)$|without the race detector|needs root|cannot be mounted here|^only Linux|^quorum queues of 3\.x|^3\.x refuses|^-update|to install what is missing:`)

// event is one line of the output of `go test -json`. `go doc test2json` describes its fields.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// run runs go test for one package and reads its output.
func (r *results) run(j job) {
	self, err := os.Executable()
	if err != nil {
		r.fail(err)
		return
	}
	args := []string{"test", "-json", "-p=1", "-count=1", "-vet=off", timeout, "-exec=" + self + " run"} // make runs vet on all packages first
	cmd := exec.Command("go", append(args, j.args...)...)
	cmd.Dir, cmd.Stderr = j.folder, os.Stderr
	cmd.Env = append(os.Environ(), "GOGC="+cmp.Or(os.Getenv("GOGC"), garbage))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.fail(err)
		return
	}
	said := output{}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 && json.Unmarshal(line, &e) == nil {
			r.readEvent(e, said)
		} else if len(line) > 0 {
			os.Stdout.Write(line)
		}
		if err != nil {
			if err != io.EOF {
				r.fail(err)
			}
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		r.fail(nil)
	}
}

func (r *results) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

var (
	reason    = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)\n`)
	processor = regexp.MustCompile(`^processor time: ([0-9.]+) s\n`)
)

// output contains the lines that tests have printed so far, by package and test name. Lines that
// belong to no test have the name "".
type output map[string][]string

func (r *results) readEvent(e event, said output) {
	r.mu.Lock()
	defer r.mu.Unlock()
	top, _, below := strings.Cut(e.Test, "/")
	key := e.Package + " " + top
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		said[key] = append(said[key], e.Output)
		if m := reason.FindStringSubmatch(e.Output); m != nil {
			r.latest[e.Package+" "+e.Test] = m[1]
		}
	case "pass", "fail", "skip":
		if why := r.latest[e.Package+" "+e.Test]; e.Action == "skip" && e.Test != "" && os.Getenv("DLO_TEST_REQUIRE") == "1" && !expected.MatchString(why) {
			r.unexpected = append(r.unexpected, fmt.Sprintf("%s %s: %s", e.Package, e.Test, cmp.Or(why, "it does not say why")))
		}
		if e.Test == "" {
			r.finishPackage(e, said)
		} else if !below {
			r.judge(key, e.Action, said[key])
			delete(said, key)
		}
	}
}

// judge records how a test ended. If a test is in several runs, a pass counts more than a skip, and
// a failure counts most.
func (r *results) judge(key, action string, text []string) {
	switch {
	case action == "fail":
		fmt.Print(strings.Join(text, ""))
	case action == "skip":
		for _, line := range text {
			if m := reason.FindStringSubmatch(line); m != nil {
				r.reasons[key] = m[1]
			}
		}
	}
	rank := []string{"", "skip", "pass", "fail"}
	r.tests[key] = rank[max(slices.Index(rank, action), slices.Index(rank, r.tests[key]))]
}

// finishPackage prints the line of a package that has ended. If one of its tests has not ended, the
// test program died, and the test counts as failed.
func (r *results) finishPackage(e event, said output) {
	var used float64
	for _, line := range said[e.Package+" "] {
		if m := processor.FindStringSubmatch(line); m != nil {
			used, _ = strconv.ParseFloat(m[1], 64)
		}
	}
	r.processor += used
	if e.Action == "fail" {
		for _, key := range slices.Sorted(maps.Keys(said)) {
			switch test, ours := strings.CutPrefix(key, e.Package+" "); {
			case ours && test == "":
				fmt.Print(strings.Join(said[key], ""))
			case ours:
				r.judge(key, e.Action, said[key])
			}
		}
	} else {
		fmt.Printf("ok  \t%s\t%.1f s, %.1f s processor\n", strings.TrimPrefix(e.Package, module), e.Elapsed, used)
	}
	maps.DeleteFunc(said, func(key string, _ []string) bool { return strings.HasPrefix(key, e.Package+" ") })
}

// line returns the last line of the output: the number of tests by what became of them, why tests
// were skipped, and the time that all this took.
func (r *results) line(packages []*pkg, tier string, took time.Duration) string {
	count, why := map[string]int{}, map[string]int{}
	for key, ended := range r.tests {
		count[ended]++
		if ended == "skip" {
			why[cmp.Or(r.reasons[key], "it does not say why")]++
		}
	}
	parts := []string{thousands(count["pass"]) + " passed", thousands(count["fail"]) + " failed"}
	tests, full := 0, 0
	for _, p := range packages {
		tests, full = tests+len(p.tests), full+len(p.full)
	}
	switch tier {
	case "":
		delete(why, "in test-full")
		parts = append(parts, thousands(full)+" in test-full")
	case "rest":
		parts = append(parts, thousands(tests-full)+" in test")
	}
	for _, other := range []string{"in soak", "in bench"} {
		if n := why[other]; n > 0 {
			parts = append(parts, thousands(n)+" "+other)
			delete(why, other)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(why)) {
		parts = append(parts, fmt.Sprintf("%d skipped: %s", why[text], text))
	}
	var all syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &all); err != nil {
		parts = append(parts, err.Error())
	}
	return fmt.Sprintf("%s; %.0f s processor, builds %.0f s more, %.0f s wall", strings.Join(parts, ", "), r.processor, seconds(all)-r.processor, took.Seconds())
}

// thousands returns a number with a comma before each three digits.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
