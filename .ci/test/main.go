// Command test runs all tests of the repository in three lanes side by side. It prints a line for
// each package that ends, and the output of each test that fails. The last line gives the number of
// tests, the time that they took, and the reasons why tests were skipped.
//
//	go run ./.ci/test
//
// One lane keeps a processor busy, package after package. The other two lanes start whole programs
// and brokers, and wait most of the time. A lane that is done helps the first one. The packages of
// internal/ run with the race detector if there is a C compiler. SQLite, which is translated to Go,
// is not instrumented: that would take four times as long, and it is not our code.
//
// With DLO_TEST_REQUIRE=1, as in make test, a test that is skipped for an unexpected reason is a
// failure. A broker or a browser that is missing therefore never makes the run green.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
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
	// uncached turns off the test cache. A test may start a program, and go test does not notice that
	// the source of that program has changed.
	uncached = "-count=1"
)

var (
	system = module + "internal/system" // takes longer than any other package
	// waiting is the list of the packages whose tests start whole programs or brokers. The tests of
	// internal/system do this too, but that package is not in this list.
	waiting = []string{module + "cmd/demo", module + "internal/testenv", module + "internal/rabbitmq"}
	// long is the list of the packages whose tests need the most processor time, in ascending
	// order. Their tests start first, so that the three lanes end at about the same time.
	long = []string{module + "internal/payload", module + "web", module + "internal/store", module + "web/view"}
	// twice is the list of the packages that also run without the race detector. Some of their
	// tests use much memory or time in one goroutine, and skip themselves under the race detector.
	twice = []string{module + "internal/payload", module + "internal/descriptor", module + "internal/schemas"}
	// unraced is the list of the packages below internal/ that run without the race detector,
	// because their tests mostly watch other programs.
	unraced = []string{system, module + "internal/testenv"}
)

// job is one run of go test.
type job struct {
	folder string
	args   []string
}

func main() {
	began := time.Now()
	packages, err := exec.Command("go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "go list:", err)
		os.Exit(1)
	}
	r := &results{tests: map[string]string{}, reasons: map[string]string{}, latest: map[string]string{}}
	race := canRace()
	waits, computes := jobs(strings.Fields(string(packages)), race)
	rest := make(chan job, len(computes))
	for _, j := range computes {
		rest <- j
	}
	close(rest)
	var lanes sync.WaitGroup
	for _, own := range [][]job{nil, {{".", []string{uncached, "-parallel=6", system}}}, waits} {
		lanes.Go(func() {
			for _, j := range own {
				r.run(j)
			}
			for j := range rest {
				r.run(j)
			}
		})
	}
	lanes.Wait()
	if !race {
		fmt.Println("without the race detector: go has no cgo or no C compiler here")
	}
	for _, text := range r.unexpected {
		fmt.Println("skipped, although make test requires it:", text)
	}
	fmt.Println(r.line(time.Since(began)))
	if r.failed || len(r.unexpected) > 0 {
		os.Exit(1)
	}
}

// jobs returns the runs of go test, without the run for internal/system. The runs in "waits" start
// whole programs or brokers, and wait for them most of the time. The runs in "computes" keep a
// processor busy.
func jobs(packages []string, race bool) (waits, computes []job) {
	slices.SortStableFunc(packages, func(a, b string) int { return slices.Index(long, b) - slices.Index(long, a) })
	for _, name := range packages {
		var args []string
		if race && strings.HasPrefix(name, module+"internal/") && !slices.Contains(unraced, name) {
			args = []string{"-race", "-gcflags=modernc.org/...=-race=false"}
		}
		switch {
		case name == system:
		case slices.Contains(waiting, name):
			waits = append(waits, job{".", append(args, uncached, "-parallel=3", name)})
		default:
			computes = append(computes, job{".", append(args, name)})
		}
	}
	computes = append(computes, job{"internal/payload/corpus", []string{"./..."}}, job{"internal/topology/forms", []string{"./..."}}, job{"web/clients", []string{uncached, "./..."}})
	return waits, slices.Insert(computes, len(long), job{".", twice})
}

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
	mu       sync.Mutex
	packages int
	tests    map[string]string // "pass", "fail" or "skip" by the package and the name of a top-level test
	reasons  map[string]string // why a test was skipped
	failed   bool

	latest     map[string]string // the latest message by the package and the name of a test or subtest
	unexpected []string          // the tests that were skipped although DLO_TEST_REQUIRE forbids it
}

// expected is a pattern for the reasons why a test may be skipped in `make test`. Such a test only
// measures something, takes long, runs in another lane, or needs root. Or it is for another version
// of RabbitMQ or another operating system.
var expected = regexp.MustCompile(`make bench|DLO_BENCH|DLO_SOAK|without the race detector|needs root|cannot be mounted here|^only Linux|^quorum queues of 3\.x|^3\.x refuses|^-update|to install what is missing:`)

// event is one line of the output of `go test -json`. `go doc test2json` describes its fields.
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // only set for a line about a build
	Elapsed                       float64
}

// run runs go test for one package after another and reads its output.
func (r *results) run(j job) {
	cmd := exec.Command("go", append([]string{"test", "-json", "-p=1", "-vet=off", timeout}, j.args...)...) // make runs vet on all packages first
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

var reason = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)\n`)

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

// judge records how a test ended. If a test runs several times, a pass counts more than a skip, and
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
		r.packages++
		fmt.Printf("ok  \t%s\t%.1fs\n", e.Package, e.Elapsed)
	}
	maps.DeleteFunc(said, func(key string, _ []string) bool { return strings.HasPrefix(key, e.Package+" ") })
}

// line returns the last line of the output: the number of tests, their time, and why tests were
// skipped.
func (r *results) line(took time.Duration) string {
	count, why := map[string]int{}, map[string]int{}
	for key, ended := range r.tests {
		count[ended]++
		if ended == "skip" {
			why[cmp.Or(r.reasons[key], "it does not say why")]++
		}
	}
	line := fmt.Sprintf("%d packages, %d tests, %d s: %d passed, %d failed, %d skipped", r.packages, len(r.tests), int(took.Seconds()), count["pass"], count["fail"], count["skip"])
	var reasons []string
	for _, text := range slices.Sorted(maps.Keys(why)) {
		reasons = append(reasons, fmt.Sprintf("%d: %s", why[text], text))
	}
	if len(reasons) > 0 {
		line += " (" + strings.Join(reasons, "; ") + ")"
	}
	return line
}
