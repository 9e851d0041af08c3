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

// Row is the result of one failure.
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

// Seen is the report that one place shows. Seconds counts from the failure, or from the cure if the
// report is about the cure.
type Seen struct {
	Says    string
	Seconds float64 // -1 = never
}

// MarshalJSON writes the seconds as a duration, such as "1.5s", or null for never.
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
	nothing = Seen{"", 0} // no report is expected in this place
)

// missing names the places that have not reported the failure yet, or returns "" if all have.
func (r *Row) missing() string {
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

// slowest returns the seconds until the last place had reported the failure.
func (r *Row) slowest() float64 { return max(r.Page.Seconds, r.Ready.Seconds, r.Notice.Seconds) }

// Failed returns the number of rows that did not pass. Skipped rows do not count.
func (r *Report) Failed() (n int) {
	for _, row := range r.Rows {
		if !row.Pass && row.Skipped == "" {
			n++
		}
	}
	return n
}

// Skipped returns the number of skipped rows.
func (r *Report) Skipped() (n int) {
	for _, row := range r.Rows {
		if row.Skipped != "" {
			n++
		}
	}
	return n
}

// Write writes a block for each failure with a line for each place. The texts are too long for
// table columns.
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
			line := fmt.Sprintf("      %-9s%6s  %s", place.name, place.seen.when(), deadletter.Visible(deadletter.Cut(place.seen.Says, shown)))
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		}
	}
	_, err := fmt.Fprintf(out, "%d failures: %d passed, %d failed, %d left out\n", len(r.Rows), len(r.Rows)-r.Failed()-r.Skipped(), r.Failed(), r.Skipped())
	return err
}

// when formats the time that passed until the report.
func (s Seen) when() string {
	switch {
	case s == unseen:
		return "never"
	case s == nothing:
		return "-"
	}
	return fmt.Sprintf("%.0f s", s.Seconds)
}

// shown is how many bytes of a text are printed.
const shown = 160
