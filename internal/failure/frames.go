package failure

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	maxFrames   = 5
	maxFrame    = 200 // bytes of the name of one
	maxLine     = 1000
	maxSections = 50
	maxSecrets  = 20 // lines of what is masked that are looked for in a stack
)

// Frames reduces a stack trace to its own frames: the names of the functions, innermost first, at
// most five, without what differs from build to build or from run to run (lines, addresses, numbers
// of lambdas, generated suffixes). Left out are the frames of runtimes, standard libraries, and
// well-known frameworks and drivers. Where there are several exceptions, that which caused the
// others comes first. It knows Java and its kin, .NET, Python, Node, Ruby, PHP, Go, Elixir and
// Rust; of what it does not know it returns nothing.
func Frames(stack string) []string {
	s, rust := sections{}, false
	all := append(slices.Collect(lines(stack[:min(len(stack), maxStack)])), "") // what follows the last
	for i, line := range all[:len(all)-1] {
		line = line[:min(len(line), maxLine)]
		t := strings.TrimSpace(line)
		if was := rust; s.mark(t) || was && strings.HasPrefix(t, "at ") { // the place of the frame before
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

// frame is one call of a stack.
type frame struct {
	name   string
	own    bool
	python bool
	rust   bool
	panics bool // of Go: what stands above it only reports what happened below
}

// isFrame says whether a line is a frame, as far as it can be told without the next one.
func isFrame(line string) bool {
	_, ok := parseFrame(line[:min(len(line), maxLine)], "")
	return ok
}

// parseFrame reads one line. The next tells Go's from any other text, and where Rust's lie.
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

// sections are the exceptions of a trace, in the order in which they stand there, each with its own
// frames.
type sections struct {
	list   [][]string
	caused bool // each is the cause of the one before
	python bool // innermost last
	hidden bool // a suppressed exception is passed over
}

// mark begins an exception where a line says that one begins.
func (s *sections) mark(line string) bool {
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
	if i := slices.Index(*at, f.name); f.python && i >= 0 { // it counts where it is innermost
		*at = slices.Delete(*at, i, i+1)
	} else if !f.own || f.name == "" || i >= 0 { // a recursion counts once
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

// bare returns only the frames of a stack, without what they were called with: what is masked
// elsewhere may be in the rest. Of the frames, those are left out in which it stands as well.
func bare(stack string, secrets ...string) string {
	var hidden []string
	for _, s := range secrets {
		for line := range lines(s[:min(len(s), maxMessage)]) {
			if line = strings.TrimSpace(line); len(line) > 2 && len(hidden) < maxSecrets {
				hidden = append(hidden, line)
			}
		}
	}
	var b strings.Builder
	all := append(slices.Collect(lines(stack[:min(len(stack), maxStack)])), "") // what follows the last
	for i, line := range all[:len(all)-1] {
		if _, ok := parseFrame(line[:min(len(line), maxLine)], all[i+1]); !ok {
			continue
		}
		if t := strings.TrimSpace(line); t[0] == '#' { // PHP writes arguments
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
