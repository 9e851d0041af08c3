package server

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
)

// writer is a function that is used as an io.Writer.
type writer func([]byte) (int, error)

func (w writer) Write(text []byte) (int, error) { return w(text) }

// TestTheLogFoldsWhatRepeats checks how the log handles lines that repeat. The first lines of a
// kind must be written immediately. Further lines of the same kind must be counted, and the log
// must report their number each minute. A line of a new kind must be written immediately, even
// during a flood of repeated lines.
func TestTheLogFoldsWhatRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		log, _, flush := newLog(writer(func(text []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, string(text))
			return len(text), nil
		}), config.Defaults().Log)
		written := func() int {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return len(lines)
		}
		last := func() string {
			mu.Lock()
			defer mu.Unlock()
			return lines[len(lines)-1]
		}
		inbox := log.With("inbox", "dlo.letters")
		for n := range 4317 {
			inbox.Warn("doubtful twins held", "letters", n)
		}
		if n := written(); n != logAlike {
			t.Errorf("%d lines of 4317 that are alike", n)
		}
		log.With("inbox", "orders.dlq").Warn("doubtful twins held", "letters", 3)
		inbox.Error("doubtful twins held", "letters", 3)
		inbox.Warn("session ended", "err", errors.New("no such luck"))
		if n := written(); n != logAlike+3 {
			t.Errorf("%d lines: another inbox, level and message are new", n)
		}
		time.Sleep(logFold)
		if n := written(); n != logAlike+4 ||
			!strings.Contains(
				last(),
				`msg="doubtful twins held" inbox=dlo.letters letters=4316 more="one of 4312 such lines since the last"`,
			) {
			t.Errorf("%d lines after a minute: %s", n, last())
		}
		for range 600 { // the flood continues, so the log gets one line a minute
			inbox.Warn("doubtful twins held", "letters", 1)
			time.Sleep(time.Second)
		}
		if n := written() - logAlike - 4; n != 10 {
			t.Errorf("%d lines of 600 in ten minutes", n)
		}
		inbox.Warn("doubtful twins held", "letters", 1, "err", "something else")
		if !strings.Contains(last(), "something else") {
			t.Errorf("what is new waits: %s", last())
		}
		time.Sleep(3 * logFold) // the flood has ended
		before := written()
		inbox.Warn("doubtful twins held", "letters", 1)
		if n := written(); n != before+1 {
			t.Errorf("%d lines of one that comes again after a while", n-before)
		}
		before = written()
		for n := range 1000 { // each line is different
			inbox.Error("request failed", "path", "/"+strings.Repeat("x", n))
		}
		if n := written(); n != before+logLines {
			t.Errorf("%d lines of 1000 that differ", n-before)
		}
		flush()
		if want := fmt.Sprintf(`more="one of %d such lines`, 1000-logLines); !strings.Contains(last(), want) {
			t.Errorf("at the end: %s", last())
		}
	})
}
