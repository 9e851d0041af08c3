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
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
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

// These lists arrange the folders with tests. A list begins with what takes longest.
var (
	// watching start whole programs, and run without the race detector.
	watching = []string{"internal/system", "web/view", "internal/testenv", "cmd/demo"}
	// raced have goroutines that meet, and run with the race detector in each tier.
	raced = []string{
		"internal/rabbitmq", "internal/requeue", "internal/operation", "internal/notify", "internal/classify",
		"internal/ingest",
		"internal/schemas", "internal/server", "internal/survey", "internal/drain",
	}
	// partly run with the race detector too, but in make test only the tests that meeting matches.
	partly  = []string{"internal/store", "web"}
	meeting = "UrgentGoFirst|GivesUpWaiting|EachQueueHasItsTurn|WidensNoScope|Stream|UploadsHinder|ASlowListEnds|NobodyTakesAllLists|" +
		"ListsLeaveReaders|TestLimits|AtTheSameTime|DuringAR"
	// modules have a go.mod of their own. All their tests are in test-full.
	modules = []string{"web/clients", "internal/payload/corpus"}
)

var (
	aTest   = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(t \*testing\.T\)`)
	inFull  = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\t(?:testenv\.)?Full\(t\)$`)
	unraced = regexp.MustCompile(
		`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n(?:\t.*\n){0,3}\tpayloadtest\.Unraced\(t\)$`,
	)
	// expected matches the reasons for which a test may be skipped. It is in another tier, or needs
	// root, another version of RabbitMQ or another operating system.
	expected = regexp.MustCompile(
		`^in (test-full|soak|bench)$|without the race detector|needs root|cannot be mounted here|could not be fetched|^only Linux|^quorum queues of 3\.x|^3\.x refuses|^-update|to install what is missing:`,
	)
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "run" {
		os.Exit(runCounted(os.Args[2:]))
	}
	began, tier := time.Now(), os.Getenv("DLO_TEST")
	tests, full := namesIn(".", aTest), namesIn(".", inFull)
	for _, m := range modules {
		tests[m] = all(namesIn(m, aTest))
		full[m] = tests[m]
	}
	r := results{said: map[string]string{}, ended: map[string]string{}, reasons: map[string]string{}}
	var lanes sync.WaitGroup
	for _, lane := range plan(tier, tests, full) {
		lanes.Go(func() {
			for _, args := range lane {
				r.run(args)
			}
		})
	}
	lanes.Wait()
	fmt.Println(r.line(tier, len(all(tests)), len(all(full)), time.Since(began)))
	if r.failed {
		os.Exit(1)
	}
}

// namesIn returns the tests below a folder that match a pattern, by folder. It leaves out the
// modules below the folder.
func namesIn(root string, pattern *regexp.Regexp) map[string][]string {
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains(modules, path)) {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range pattern.FindAllSubmatch(text, -1) {
			found[filepath.Dir(path)] = append(found[filepath.Dir(path)], string(m[1]))
		}
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return found
}

// all returns the tests of all folders.
func all(byFolder map[string][]string) []string {
	return slices.Concat(slices.Collect(maps.Values(byFolder))...)
}

// plan returns the calls of go test, in lanes that run side by side. No test is in two calls.
func plan(tier string, tests, full map[string][]string) (lanes [][][]string) {
	call := func(module string, folders []string, flags ...string) []string {
		folders = slices.DeleteFunc(
			slices.Clone(folders), func(f string) bool { return tier == "rest" && module == "." && len(full[f]) == 0 },
		)
		if len(folders) == 0 {
			return nil
		}
		args := append([]string{"-C", module, "test"}, flags...)
		for _, folder := range folders {
			args = append(args, "./"+folder)
		}
		return args
	}
	var others []string
	for folder := range tests {
		if !slices.Contains(slices.Concat(watching, raced, partly, modules), folder) {
			others = append(others, folder)
		}
	}
	slices.Sort(others)
	// SQLite, translated to Go: four times as slow with it, and not ours
	withRace := []string{"-race", "-parallel=3", "-gcflags=modernc.org/...=-race=false"}
	lanes = [][][]string{{call(".", watching, "-p=2", "-parallel=6")}, {call(".", raced, withRace...)}}
	switch tier {
	case "":
		lanes[1] = append(lanes[1], call(".", partly, append(withRace, "-run="+meeting)...))
		return append(lanes, [][]string{call(".", partly, "-skip="+meeting), call(".", others)})
	case "rest":
		lanes = append(lanes, [][]string{call(".", partly), call(".", others)})
	default:
		without := namesIn(".", unraced)
		lanes = append(lanes, [][]string{
			call(".", slices.Concat(partly, others), withRace...),
			call(".", slices.Collect(maps.Keys(without)), "-run=^("+strings.Join(all(without), "|")+")$"),
		})
	}
	for _, m := range modules {
		lanes[1] = append(lanes[1], call(m, []string{"..."}))
	}
	if tier == "full" { // side by side, a broker of the tests got so little of the processor that it lost connections
		return [][][]string{slices.Concat(lanes...)}
	}
	return lanes
}

// results contains the results of all tests. Several lanes add to it at the same time.
type results struct {
	mu sync.Mutex
	// what a test that runs has printed, by its package and its name without subtests; "" = the
	// package
	said      map[string]string
	ended     map[string]string // "pass", "fail" or "skip", by the package and the name of a top-level test
	reasons   map[string]string // the latest message of a test or a subtest, which is the reason if it is skipped
	processor float64           // seconds that the tests and their descendants used
	failed    bool
}

// event is one line of the output of `go test -json`. `go doc test2json` describes its fields.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// run calls go and reads the events. GOGC lets the small heaps of the tests and their programs grow
// more between collections; the tests of internal/store took 12 % less processor time with it.
func (r *results) run(args []string) {
	if args == nil {
		return
	}
	self, err := os.Executable()
	timeout := "20m"
	if os.Getenv("DLO_TEST") == "full" { // all of a package, with the race detector, beside other packages
		timeout = "60m"
	}
	// make runs vet on all packages first
	flags := []string{"-json", "-count=1", "-trimpath", "-vet=off", "-timeout=" + timeout, "-exec=" + self + " run"}
	cmd := exec.Command("go", slices.Insert(args, 3, flags...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOGC="+cmp.Or(os.Getenv("GOGC"), "400")), os.Stderr
	out, err2 := cmd.StdoutPipe()
	if err = cmp.Or(err, err2, cmd.Start()); err == nil {
		for events := json.NewDecoder(out); err == nil; {
			var e event
			if err = events.Decode(&e); err == nil {
				r.read(e)
			}
		}
		if err = cmp.Or(cmd.Wait(), err); err == io.EOF {
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	fmt.Println("go test:", err)
}

var (
	reason    = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)\n`)
	processor = regexp.MustCompile(`(?m)^processor time: ([0-9.]+) s$`)
)

func (r *results) read(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	top, _, _ := strings.Cut(e.Test, "/")
	key, whole := e.Package+" "+top, e.Package+" "+e.Test
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		r.said[key] += e.Output
		if m := reason.FindStringSubmatch(e.Output); m != nil {
			r.reasons[whole] = m[1]
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
			return
		}
		if e.Action == "skip" && os.Getenv("DLO_TEST_REQUIRE") == "1" && !expected.MatchString(r.reasons[whole]) {
			r.failed = true
			fmt.Printf(
				"skipped, although make test requires it: %s: %s\n", whole,
				cmp.Or(r.reasons[whole], "it does not say why"),
			)
		}
		if e.Action == "skip" && strings.Contains(r.reasons[whole], "could not be fetched") {
			fmt.Printf("skipped: %s: %s\n", whole, r.reasons[whole])
		}
		if whole == key {
			r.end(key, e.Action)
		}
	}
}

// end records how a test ended, and prints what it said if it failed. If a test is in several
// calls, a pass counts more than a skip.
func (r *results) end(key, action string) {
	if action == "fail" {
		fmt.Print(r.said[key])
	}
	if r.ended[key] == "" || action != "skip" {
		r.ended[key] = action
	}
	delete(r.said, key)
}

// endPackage prints the line of a package. If one of its tests has not ended, the test binary died.
func (r *results) endPackage(e event) {
	var used float64
	if m := processor.FindStringSubmatch(r.said[e.Package+" "]); m != nil {
		used, _ = strconv.ParseFloat(m[1], 64)
	}
	r.processor += used
	if e.Action != "fail" {
		fmt.Printf("ok  \t%s\t%.1f s, %.1f s processor\n", e.Package, e.Elapsed, used)
	}
	for key := range r.said {
		if test, ours := strings.CutPrefix(key, e.Package+" "); ours && e.Action == "fail" && test != "" {
			r.end(key, "fail")
		} else if ours {
			if e.Action == "fail" {
				fmt.Print(r.said[key])
			}
			delete(r.said, key)
		}
	}
}

// line returns the last line of the output.
func (r *results) line(tier string, tests, full int, took time.Duration) string {
	count, why := map[string]int{}, map[string]int{}
	for key, ended := range r.ended {
		if count[ended]++; ended == "skip" {
			why[cmp.Or(r.reasons[key], "it does not say why")]++
		}
	}
	parts := []string{thousands(count["pass"]) + " passed", thousands(count["fail"]) + " failed"}
	switch tier {
	case "":
		why["in test-full"] = full
	case "rest":
		why["in make test"] = tests - full
	}
	var skipped []string
	for _, text := range slices.Sorted(maps.Keys(why)) {
		if strings.HasPrefix(text, "in ") {
			parts = append(parts, thousands(why[text])+" "+text)
		} else {
			skipped = append(skipped, thousands(why[text])+" skipped: "+text)
		}
	}
	parts = append(parts, skipped...)
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		parts = append(parts, err.Error())
	}
	return fmt.Sprintf(
		"%s; %.0f s processor, builds %.0f s more, %.0f s wall", strings.Join(parts, ", "), r.processor,
		seconds(used)-r.processor, took.Seconds(),
	)
}

// thousands returns a number with a comma before each three digits.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
