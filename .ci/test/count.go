package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lingerLimit is the time that the processes of a test binary have to end after it.
const lingerLimit = 20 * time.Second

// runCounted runs the test binary of a package, as go test -exec asks for it, and waits for it and
// for all its descendants. In the tier "rest", it runs only the tests that testenv.Full marks. It
// prints the processor time of all of them. A process that outlives the
// test binary by more than lingerLimit is named and killed, and the package has failed. The result
// is the exit code.
func runCounted(args []string) int {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER, Linux: orphans below this process become its children
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		fmt.Fprintln(os.Stderr, "prctl:", errno)
	}
	runtime.LockOSThread() // the child ends with the thread that starts it
	if full := namesIn(".", inFull)["."]; os.Getenv("DLO_TEST") == "rest" && len(full) > 0 {
		args = append(args, "-test.run=^("+strings.Join(full, "|")+")$")
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	code := 0
	if err := cmd.Run(); err != nil {
		code = max(cmd.ProcessState.ExitCode(), 1)
	}
	for until := time.Now().Add(lingerLimit); ; {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR || pid > 0 {
			continue
		}
		if err != nil { // ECHILD: there are none left
			break
		}
		if time.Now().After(until) {
			code = 1
			killChildren()
		}
		time.Sleep(50 * time.Millisecond)
	}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		fmt.Fprintln(os.Stderr, "getrusage:", err)
	}
	fmt.Printf("processor time: %.2f s\n", seconds(used))
	return code
}

// killChildren prints the command lines of the children of this process, and kills them. Their own
// children then become children of this process.
func killChildren() {
	self := os.Getpid()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		_, after, _ := strings.Cut(string(text), ") ") // the name of the process may contain anything
		fields := strings.Fields(after)
		pid, notANumber := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || notANumber != nil || len(fields) < 2 || fields[1] != strconv.Itoa(self) {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		fmt.Printf(
			"still running %s after the tests: %d %s\n", lingerLimit, pid,
			strings.ReplaceAll(string(command), "\x00", " "),
		)
		_ = syscall.Kill(pid, syscall.SIGKILL) // fails only if it has ended
	}
}

// seconds returns the processor time of a use, user and system together, in seconds.
func seconds(used syscall.Rusage) float64 {
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}
