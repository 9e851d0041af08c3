package requeue

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// reportFor is how long dlo reports that a broker is older than the store, or that it is a
// different broker.
const reportFor = 24 * time.Hour

// addProblem adds a problem. If there is already a problem of the same kind, it replaces that
// problem and keeps its start time.
func (p *proof) addProblem(now time.Time, problem deadletter.Problem) {
	problem.Since = now
	if was, ok := p.problems[problem.Kind]; ok {
		problem.Since = was.Since
	}
	p.problems[problem.Kind] = problem
}

// Problems returns the problems with the two records of the store's progress: the mark in the
// broker and the note beside the file. Because of such a problem, dlo sends no letters, or sends
// them less safely.
func (d *Dispatcher) Problems() []deadletter.Problem {
	p := &d.proof
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []deadletter.Problem
	if d.Standing() == Twice {
		list = append(list, p.problems[deadletter.ProblemStoreTwice])
	}
	for _, kind := range []deadletter.ProblemKind{
		deadletter.ProblemStoreUnguarded, deadletter.ProblemStoreUnproved, deadletter.ProblemBrokerReplaced,
		deadletter.ProblemNoProgress,
	} {
		problem, ok := p.problems[kind]
		if ok && (kind != deadletter.ProblemBrokerReplaced || d.o.Now().Sub(problem.Since) < reportFor) {
			list = append(list, problem)
		}
	}
	return list
}

func (d *Dispatcher) unprovedProblem() deadletter.Problem {
	return deadletter.Problem{
		Kind: deadletter.ProblemStoreUnproved, Severity: deadletter.SeverityPage, Broker: d.o.Broker, VHost: d.o.VHost,
		Title: "Nothing is sent to broker " + d.o.Broker + ": nothing proves that this store is current.",
		Text:  "The notes in the broker and beside the store file are gone. If the file is an older copy, letters that are due in it may have been sent already.",
		Cure:  "Say on any page whether the store is current or a copy. Starting dlo once with --accept-store also says that the store is current.",
	}
}

func (d *Dispatcher) replacedProblem(mark *deadletter.Progress) deadletter.Problem {
	what := "has no mark of this store any more"
	if mark != nil {
		what = "has a mark of this store from " + mark.At.UTC().Format(time.DateTime) +
			" UTC, which is older than the last mark that it confirmed"
	}
	return deadletter.Problem{
		Kind:     deadletter.ProblemBrokerReplaced,
		Severity: deadletter.SeverityNotify,
		Broker:   d.o.Broker,
		VHost:    d.o.VHost,
		Title:    "Broker " + d.o.Broker + " is older than its last confirm to this store.",
		Text:     "It " + what + ": it was restored from a backup or replaced, or its queues were purged. The store is current, and dlo continues. Messages that were in the queues of the broker, and letters that were sent there, may be gone or may be back.",
		Cure:     "Look at the letters that were requeued lately: state:requeued,quiet since:1d. Requeue those whose work was not done.",
	}
}

// unnotedProblem returns the problem of a mark that cannot be read or written. The mark is the
// record of the store's progress in the broker. The parameter "verb" is "read" or "written".
func (d *Dispatcher) unnotedProblem(verb string, err error) deadletter.Problem {
	return deadletter.Problem{
		Kind: deadletter.ProblemNoProgress, Severity: deadletter.SeverityNotify, Broker: d.o.Broker, VHost: d.o.VHost,
		Title: "The mark of this store cannot be " + verb + " in broker " + d.o.Broker + ".",
		Text:  "Letters are still sent, but now only the note beside the store shows whether the store is an older copy. " + deadletter.Visible(err.Error()) + ".",
		Cure:  "Check whether dlo's user may configure, write and read the queues dlo.epoch.*, and whether the node of the queue is up.",
	}
}

// nowhereProblem returns a problem which says that nothing is sent. The reason is that the progress
// can be recorded neither in the broker nor beside the store.
func (d *Dispatcher) nowhereProblem(err error) deadletter.Problem {
	p := d.unnotedProblem("written", err)
	p.Severity = deadletter.SeverityPage
	p.Text = "The note beside the store cannot be written either, so nothing is sent. " +
		deadletter.Visible(err.Error()) + "."
	return p
}
