package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// nothingNeeded begins the sentence that Overview must not show while there is a problem with the
// severity "page".
const nothingNeeded = "Nothing needs a person"

// runFailure runs one failure. It causes the failure, waits for all reports, applies the cure, and
// waits for its effect.
func (g *ground) runFailure(ctx context.Context, f *Failure) Row {
	row := Row{Name: f.Name, Does: f.Does, Page: unseen, Ready: unseen, Notice: unseen, Mended: unseen}
	if err := g.tryFailure(ctx, f, &row); err != nil {
		row.Why = err.Error()
		g.o.Say("FAIL " + f.Name + ": " + row.Why)
		return row
	}
	row.Pass = true
	g.o.Say(fmt.Sprintf("ok   %s: told after %.0f s, mended %.0f s after the cure", f.Name, row.slowest(), row.Mended.Seconds))
	return row
}

// tryFailure causes one failure, waits for all reports, applies the cure, and waits for its effect.
// If it returns an error, the failure did not pass, and the error is the reason.
func (g *ground) tryFailure(ctx context.Context, f *Failure, row *Row) error {
	began := time.Now()
	err := f.make(ctx, g)
	if f.wants.exit != 0 {
		return f.wants.recordRefusal(row, err, began)
	}
	if err != nil {
		return fmt.Errorf("it could not be made: %w", err)
	}
	told, err := g.awaitReports(ctx, f, row, began)
	if err != nil {
		return fmt.Errorf("not told within %s: %w", Limit, err)
	}
	cured := time.Now()
	if err := g.cure(ctx, f, told); err != nil {
		return fmt.Errorf("the cure: %w", err)
	}
	if err := waitUntil(
		ctx, "the problem goes away", Limit, func() bool { return g.isCured(ctx, f, told) },
	); err != nil {
		return err
	}
	row.Mended = Seen{told.Cure, time.Since(cured).Seconds()}
	if h, rang := g.pager.firstNotice(
		f.wants.officeName(), began, func(h heard) bool { return h.isAbout(f.wants.says) },
	); f.wants.quiet && rang {
		return fmt.Errorf("nobody was to be told: %s", h.title)
	}
	return nil
}

// recordRefusal records the error of a dlo that the drill has started with a fault, so that this
// dlo should refuse to start.
func (s *sign) recordRefusal(row *Row, err error, began time.Time) error {
	if err == nil {
		return errors.New("it started")
	}
	var code interface{ ExitCode() int }
	if !errors.As(err, &code) || code.ExitCode() != s.exit {
		return err
	}
	row.Page, row.Ready, row.Mended = nothing, nothing, nothing
	row.Notice = Seen{fmt.Sprintf("exit code %d: %s", s.exit, err), time.Since(began).Seconds()}
	return nil
}

// awaitReports waits until Overview, /readyz and the pager have all reported the failure, and
// records each report. If that takes too long, it returns an error that names the places without a
// report.
func (g *ground) awaitReports(
	ctx context.Context, f *Failure, row *Row, began time.Time,
) (reported problem, err error) {
	if f.wants.quiet {
		row.Page, row.Ready, row.Notice = nothing, nothing, nothing
		return reported, nil
	}
	if f.wants.group != "" {
		row.Ready = nothing
	}
	err = waitUntil(ctx, "told", Limit-time.Since(began), func() bool {
		if o := g.office(f.wants.officeName()); o != nil {
			g.recordLook(&f.wants, o.lastLook(), row, &reported, began)
		}
		return row.missingPlaces() == ""
	})
	if errors.Is(err, errSlow) {
		err = fmt.Errorf("%s did not say it", row.missingPlaces())
	}
	return reported, err
}

// A failure is reported by /readyz, by Overview and by the pager. recordLook gets what the drill
// saw when it last read the pages of a dlo (the parameter "l"). If /readyz or one of the other two
// has reported the failure by then, recordLook writes the report into the row. It keeps only the
// first report of each. If /readyz lists a problem for the failure, recordLook stores this problem
// in the variable to which "reported" points.
func (g *ground) recordLook(s *sign, l look, row *Row, reported *problem, began time.Time) {
	if l.at.Before(began) {
		return
	}
	after := time.Since(began).Seconds()
	if p, ok := s.findProblem(l); ok && reported.Title == "" && l.status == s.readyStatus() {
		*reported, row.Ready = p, Seen{fmt.Sprintf("%d %s (%s)", l.status, p.Kind, p.Severity), after}
	}
	if text, ok := s.findOnPage(l.page, *reported); ok && row.Page == unseen {
		row.Page = Seen{text, after}
	}
	if h, ok := g.pager.firstNotice(
		s.officeName(), began, func(h heard) bool { return s.isExpected(h, *reported) },
	); ok && row.Notice == unseen {
		row.Notice = Seen{h.title, h.at.Sub(began).Seconds()}
	}
}

// readyStatus returns the status with which /readyz should respond while the failure lasts.
func (s *sign) readyStatus() int {
	if s.status == 0 {
		return 200
	}
	return s.status
}

// findProblem returns the expected problem in the answer of /readyz, and whether it is there.
func (s *sign) findProblem(l look) (problem, bool) {
	i := slices.IndexFunc(l.problems, func(p problem) bool {
		return s.kind != "" && p.Kind == string(s.kind) && p.Severity == string(s.severity) &&
			(s.broker == "" || p.Broker == s.broker) &&
			(s.about == "" || p.Queue == s.about || p.Inbox == s.about) &&
			s.containsAll(p.Title+"\n"+p.Text+"\n"+p.Cure)
	})
	if i < 0 {
		return problem{}, false
	}
	return l.problems[i], true
}

// containsAll reports whether a text contains all expected parts.
func (s *sign) containsAll(text string) bool {
	for _, part := range append([]string{s.says}, s.also...) {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// findOnPage looks on Overview for the text that reports the failure. It returns this text, or
// false if Overview does not report it. For a failure with the severity "page", Overview must not
// say at the same time that nothing needs a person.
func (s *sign) findOnPage(p page, reported problem) (string, bool) {
	if s.severity == deadletter.SeverityPage && strings.HasPrefix(p.verdict, nothingNeeded) {
		return "", false
	}
	if s.group != "" {
		i := slices.IndexFunc(p.groups, func(g group) bool { return g.queue == s.group })
		if i < 0 {
			return "", false
		}
		return s.group + ": " + p.groups[i].title, true
	}
	text := s.page
	if text == "" {
		text = reported.Title
	}
	i := slices.IndexFunc(p.banners, func(b string) bool { return text != "" && strings.Contains(b, text) })
	if i < 0 {
		return "", false
	}
	return p.banners[i], true
}

// isExpected reports whether a notice is the expected one.
func (s *sign) isExpected(h heard, reported problem) bool {
	if s.group != "" {
		return h.queue == s.group && (h.typ == "notice.opened" || h.typ == "notice.regressed")
	}
	return reported.Title != "" && h.isAbout(reported.Title)
}

// cure repairs a failure. If the failure has a cure of its own, cure applies it. Otherwise, cure
// runs the commands in the text of the reported problem.
func (g *ground) cure(ctx context.Context, f *Failure, reported problem) error {
	if f.cure != nil {
		return f.cure(ctx, g, reported)
	}
	return g.site.apply(ctx, reported.Cure)
}

// isCured reports whether a cure has taken effect. By default, neither /readyz nor Overview may
// show the problem any more.
func (g *ground) isCured(ctx context.Context, f *Failure, reported problem) bool {
	if f.mended != nil {
		return f.mended(ctx, g)
	}
	o := g.office(f.wants.officeName())
	if o == nil {
		return false
	}
	l := o.lastLook()
	_, ready := f.wants.findProblem(l)
	_, page := f.wants.findOnPage(l.page, reported)
	return l.status == 200 && !ready && !page
}
