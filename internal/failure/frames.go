package failure

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	maxFrames   = 5
	maxFrame    = 200 // maximum number of bytes of a frame's name
	maxLine     = 1000
	maxSections = 50
	maxSecrets  = 20 // maximum number of masked lines that are searched for in a stack
)

// Frames returns those frames of a stack trace that belong to the consumer's own code: at most five
// function names, the innermost first. It removes every detail that differs between builds or runs
// (lines, addresses, numbers of lambdas, generated suffixes). It omits the frames of runtimes,
// standard libraries, and well-known frameworks and drivers. If there are several exceptions, the
// frames of the one that caused the others come first. Frames supports Java and other JVM
// languages, .NET, Python, Node, Ruby, PHP, Go, Elixir and Rust. For other traces, it returns
// nothing.
func Frames(stack string) []string {
	s, rust := sections{}, false
	// an empty line, so that the last line also has a next line
	all := append(slices.Collect(lines(stack[:min(len(stack), maxStack)])), "")
	for i, line := range all[:len(all)-1] {
		line = line[:min(len(line), maxLine)]
		t := strings.TrimSpace(line)
		// this line is the position of the previous frame
		if was := rust; s.beginException(t) || was && strings.HasPrefix(t, "at ") {
			rust = false
			continue
		}
		f, ok := parseFrame(line, all[i+1])
		rust = f.rust
		if !ok {
			continue
		}
		s.python = s.python || f.python
		s.add(f)
	}
	return s.frames()
}

// frame is one line of a stack trace, which stands for one call.
type frame struct {
	name   string
	own    bool
	python bool
	rust   bool
	panics bool // only in Go: the frames above this one merely report the panic
}

// isFrame reports whether a line is a frame. It does not recognise frames for which the next line
// is needed.
func isFrame(line string) bool {
	_, ok := parseFrame(line[:min(len(line), maxLine)], "")
	return ok
}

// parseFrame parses one line. It needs the next line to distinguish a Go frame from other text, and
// to find the file of a Rust frame.
func parseFrame(line, next string) (frame, bool) {
	t := strings.TrimSpace(line)
	if len(t) < 4 {
		return frame{}, false
	}
	if rest, ok := afterAt(t); ok {
		return atFrame(rest)
	}
	switch {
	case strings.HasPrefix(t, `File "`):
		return pythonFrame(t)
	case t[0] == '#' && digit(t[1]):
		return phpFrame(t)
	case t[0] >= '0' && t[0] <= '9' && strings.Contains(t, ": "):
		return rustFrame(t, strings.TrimSpace(next))
	case strings.Contains(t, ":in "):
		return rubyFrame(t)
	case strings.Contains(t, ".ex:") || strings.Contains(t, ".exs:") || strings.Contains(t, ".erl:"):
		return elixirFrame(t)
	case line == t && strings.HasPrefix(next, "\t") && strings.Contains(next, ".go:"):
		return goFrame(t, strings.TrimSpace(next))
	}
	return frame{}, false
}

// sections holds the exceptions of a stack trace in their original order, each with the frames of
// the consumer's own code.
type sections struct {
	list   [][]string
	caused bool // each exception caused the previous one
	python bool // a Python trace, in which the innermost frame is last
	hidden bool // the frames of a suppressed exception follow, which are skipped
}

// beginException begins a new exception if the line announces one. It reports whether the line is
// such an announcement.
func (s *sections) beginException(line string) bool {
	switch {
	case strings.HasPrefix(line, "Caused by:") || strings.HasPrefix(line, "[cause]:"):
		s.caused, s.hidden = true, false
	case strings.HasPrefix(line, "Suppressed:"):
		s.hidden = true
		return true
	case strings.HasPrefix(line, "Traceback (most recent call last)"):
	default:
		return false
	}
	if len(s.list) < maxSections {
		s.list = append(s.list, nil)
	}
	return true
}

func (s *sections) add(f frame) {
	if len(s.list) == 0 {
		s.list = append(s.list, nil)
	}
	if s.hidden {
		return
	}
	at := &s.list[len(s.list)-1]
	if f.panics {
		*at = nil
		return
	}
	f.name = deadletter.Cut(f.name, maxFrame)
	// if a Python frame is repeated, only its innermost position counts
	if i := slices.Index(*at, f.name); f.python && i >= 0 {
		*at = slices.Delete(*at, i, i+1)
	} else if !f.own || f.name == "" || i >= 0 { // a recursive call counts once
		return
	}
	switch {
	case len(*at) < maxFrames:
		*at = append(*at, f.name)
	case f.python:
		*at = append((*at)[1:], f.name)
	}
}

func (s *sections) frames() []string {
	if s.caused {
		slices.Reverse(s.list)
	}
	var out []string
	for _, frames := range s.list {
		if s.python {
			slices.Reverse(frames)
		}
		for _, f := range frames {
			if len(out) < maxFrames && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// framesOnly returns only the frames of a stack, without arguments. It omits all other text, which
// may contain values that are masked elsewhere. It also omits frames that contain one of the given
// secrets.
func framesOnly(stack string, secrets ...string) string {
	var hidden []string
	for _, s := range secrets {
		for line := range lines(s[:min(len(s), maxMessage)]) {
			if line = strings.TrimSpace(line); len(line) > 2 && len(hidden) < maxSecrets {
				hidden = append(hidden, line)
			}
		}
	}
	var b strings.Builder
	// an empty line, so that the last line also has a next line
	all := append(slices.Collect(lines(stack[:min(len(stack), maxStack)])), "")
	for i, line := range all[:len(all)-1] {
		if _, ok := parseFrame(line[:min(len(line), maxLine)], all[i+1]); !ok {
			continue
		}
		if t := strings.TrimSpace(line); t[0] == '#' { // PHP prints arguments
			if j := strings.Index(line, "): "); j >= 0 {
				if k := strings.IndexByte(line[j+1:], '('); k >= 0 {
					line = line[:j+1+k] + "()"
				}
			}
		}
		if !slices.ContainsFunc(hidden, func(s string) bool { return strings.Contains(line, s) }) {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
