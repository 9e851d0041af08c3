package drill

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Report is the result of a drill.
type Report struct {
	Rows []Row `json:"rows"`
}

// Row is the result of the drill for one failure.
type Row struct {
	Name    string `json:"name"`
	Does    string `json:"does"`
	Page    Seen   `json:"page"`
	Ready   Seen   `json:"readyz"`
	Notice  Seen   `json:"notice"`
	Mended  Seen   `json:"mended"`
	Pass    bool   `json:"pass"`
	Why     string `json:"why,omitempty"`     // why it did not pass
	Skipped string `json:"skipped,omitempty"` // why it was skipped
}

// Seen is what Overview, /readyz or the pager reported about a failure or about its cure. The field
// Seconds is the time from the failure, or from the cure, until this report.
type Seen struct {
	Says    string
	Seconds float64 // -1 = there was no report
}

// MarshalJSON writes the seconds as a duration, for example "1.5s". If there was no report, it
// writes null.
func (s Seen) MarshalJSON() ([]byte, error) {
	var after *string
	if s.Seconds >= 0 {
		text := (time.Duration(s.Seconds*1000) * time.Millisecond).String()
		after = &text
	}
	return json.Marshal(struct {
		Says  string  `json:"says"`
		After *string `json:"after"`
	}{s.Says, after})
}

var (
	unseen  = Seen{"", -1}
	nothing = Seen{"", 0} // this place need not report anything
)

// missingPlaces returns a list of the places that have not reported the failure yet. The possible
// places are Overview, /readyz and the pager. If all three have reported it, missingPlaces returns
// "".
func (r *Row) missingPlaces() string {
	var list []string
	for _, p := range []struct {
		name string
		seen Seen
	}{{"Overview", r.Page}, {"/readyz", r.Ready}, {"the pager", r.Notice}} {
		if p.seen == unseen {
			list = append(list, p.name)
		}
	}
	return strings.Join(list, ", ")
}

// slowest returns the time in seconds until the failure was reported everywhere: on Overview, in
// the response of /readyz, and by a notice.
func (r *Row) slowest() float64 { return max(r.Page.Seconds, r.Ready.Seconds, r.Notice.Seconds) }

// Failed returns how many rows did not pass. It does not count skipped rows.
func (r *Report) Failed() (n int) {
	for _, row := range r.Rows {
		if !row.Pass && row.Skipped == "" {
			n++
		}
	}
	return n
}

// Skipped returns how many rows were skipped.
func (r *Report) Skipped() (n int) {
	for _, row := range r.Rows {
		if row.Skipped != "" {
			n++
		}
	}
	return n
}

// Write prints a block of lines for each failure, with one line each for Overview, /readyz, the
// notice and the cure. A failure that was left out has only one line. The texts are too long for
// the columns of a table.
func (r *Report) Write(out io.Writer) error {
	for _, row := range r.Rows {
		result := "FAIL"
		switch {
		case row.Skipped != "":
			fmt.Fprintf(out, "SKIP  %s: %s. It is left out: %s\n", row.Name, row.Does, row.Skipped)
			continue
		case row.Pass:
			result = "PASS"
		}
		fmt.Fprintf(out, "%s  %s: %s\n", result, row.Name, row.Does)
		if row.Why != "" {
			fmt.Fprintf(out, "      %s\n", deadletter.Visible(row.Why))
		}
		for _, place := range []struct {
			name string
			seen Seen
		}{{"Overview", row.Page}, {"/readyz", row.Ready}, {"notice", row.Notice}, {"mended", row.Mended}} {
			line := fmt.Sprintf(
				"      %-9s%6s  %s", place.name, place.seen.delayText(),
				deadletter.Visible(deadletter.Cut(place.seen.Says, maxShown)),
			)
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		}
	}
	_, err := fmt.Fprintf(
		out, "%d failures: %d passed, %d failed, %d left out\n", len(r.Rows), len(r.Rows)-r.Failed()-r.Skipped(),
		r.Failed(), r.Skipped(),
	)
	return err
}

// delayText returns the time until the report as text.
func (s Seen) delayText() string {
	switch {
	case s == unseen:
		return "never"
	case s == nothing:
		return "-"
	}
	return fmt.Sprintf("%.0f s", s.Seconds)
}

// maxShown is the maximum length of a printed text, in bytes. Longer texts are cut.
const maxShown = 160
