package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// storeFailures lists failures of the store. In one failure, the store was restored from a copy.
// The others concern the two proofs that a store is current: its mark in the broker, and the note
// beside its file. A proof is missing, belongs to another store, or cannot be written.
//
// The drill starts a separate dlo for each failure. In most cases, this dlo has sent letters back
// before the failure. Further letters then wait in a paused queue, and are due for a retry once the
// queue is resumed.
var storeFailures = []Failure{
	{
		Name: "store-restored",
		Does: "a copy of the store is put back, and letters were sent and received since; people requeue some of the held letters and discard the others",
		wants: sign{
			office:   "restored",
			kind:     deadletter.ProblemStoreRestored,
			severity: deadletter.SeverityPage,
			says:     fmt.Sprintf("%d letters were received that are not in this copy", few),
			also:     []string{fmt.Sprintf("are held: %d.", 2*few)},
		},
		before: beforeStoreRestored,
		make: func(ctx context.Context, g *ground) error {
			if err := os.Rename(g.storeOf("restored")+".copy", g.storeOf("restored")); err != nil {
				return err
			}
			return g.startResumed(ctx, "restored")
		},
		cure:   decideRestored,
		mended: nothingHeld,
	},
	{
		Name: "store-unproved",
		Does: "the mark of the store in the broker and the note beside its file are deleted; people say that the store is current",
		wants: sign{
			office:   "unproved",
			kind:     deadletter.ProblemStoreUnproved,
			severity: deadletter.SeverityPage,
			broker:   "unproved",
			says:     "nothing proves that this store is current",
		},
		before: func(ctx context.Context, g *ground) error { return g.haveSent(ctx, "unproved") },
		make: func(ctx context.Context, g *ground) error {
			note, err := g.forgetMark(ctx, "unproved")
			if err := errors.Join(err, os.Remove(note)); err != nil {
				return err
			}
			return g.startResumed(ctx, "unproved")
		},
		cure: func(ctx context.Context, g *ground, _ problem) error {
			if err := g.expectNothingSent(ctx, "unproved"); err != nil {
				return err
			}
			return g.office("unproved").post(ctx, "/api/v1/store/accept", nil)
		},
		mended: func(ctx context.Context, g *ground) bool {
			return !g.office("unproved").hasProblem(deadletter.ProblemStoreUnproved) && g.allSent(ctx, "unproved")
		},
	},
	{
		Name: "store-other",
		Does: "the file of the store is taken away, and dlo begins a new one in its place; the note that is left is removed",
		wants: sign{
			office:   "other",
			kind:     deadletter.ProblemStoreOther,
			severity: deadletter.SeverityNotify,
			says:     "was written for another store",
		},
		before: func(ctx context.Context, g *ground) error {
			if err := g.open(ctx, "other", g.storeConfig("other")); err != nil {
				return err
			}
			return g.stop("other")
		},
		make: func(ctx context.Context, g *ground) error {
			if err := os.Rename(g.storeOf("other"), filepath.Join(g.folder, "taken-away.db")); err != nil {
				return err
			}
			_, err := g.start(ctx, "other", g.storeConfig("other"))
			return err
		},
		cure: removeNamed,
	},
	{
		Name: "broker-replaced",
		Does: "the mark of the store in the broker is deleted, and the markers of its inbox, as in a broker that was restored",
		cure: byItself,
		wants: sign{
			office:   "replaced",
			kind:     deadletter.ProblemBrokerReplaced,
			severity: deadletter.SeverityNotify,
			broker:   "replaced",
			says:     "has no mark of this store any more",
		},
		before: func(ctx context.Context, g *ground) error { return g.haveSent(ctx, "replaced") },
		make: func(ctx context.Context, g *ground) error {
			if _, err := g.forgetMark(ctx, "replaced"); err != nil {
				return err
			}
			if err := g.site.dropNamed(ctx, deadletter.MarkerPrefix("drill.replaced")); err != nil {
				return err
			}
			return g.startResumed(ctx, "replaced")
		},
		mended: func(ctx context.Context, g *ground) bool {
			return g.office("replaced").hasProblem(deadletter.ProblemOwnQueue) && g.allSent(ctx, "replaced")
		},
	},
	{
		Name: "progress",
		Does: "what is sent cannot be noted beside the store, as a folder is in the way; it is removed",
		wants: sign{
			office: "unnoted", kind: deadletter.ProblemNoProgress, severity: deadletter.SeverityNotify,
			says: "progress note beside the store cannot be written",
		},
		before: func(ctx context.Context, g *ground) error {
			if err := g.open(ctx, "unnoted", g.storeConfig("unnoted")); err != nil {
				return err
			}
			return g.site.declare(ctx, workOf("unnoted"), "x-dead-letter-exchange", "drill.unnoted.dlx")
		},
		make: func(ctx context.Context, g *ground) error {
			note, err := g.noteOf("unnoted")
			if err != nil {
				return err
			}
			if err := os.Mkdir(note+".new", 0o700); err != nil {
				return err
			}
			return g.publishRejected(ctx, workOf("unnoted"), 1)
		},
		cure: func(ctx context.Context, g *ground, _ problem) error {
			note, err := g.noteOf("unnoted")
			return errors.Join(err, os.Remove(note+".new"))
		},
	},
}

// storeOf returns the path of the store of a dlo.
func (g *ground) storeOf(name string) string { return filepath.Join(g.folder, name+".db") }

// noteOf returns the path of the file beside the store in which dlo notes the progress of the
// store.
func (g *ground) noteOf(name string) (string, error) {
	found, err := filepath.Glob(g.storeOf(name) + ".progress-????????")
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%d notes are beside the store of %s, and one should be", len(found), name)
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// storeConfig returns the configuration of a dlo that sends each letter back after a second.
func (g *ground) storeConfig(name string) string {
	return g.config(
		name, g.entry(name, ownInbox("drill."+name)),
		"rules: [{name: soon, match: {}, retry: {delays: [1s]}, "+pages+"}]\n",
	)
}

// workOf returns the name of a work queue. The dlo with the given name sends letters back to this
// queue.
func workOf(name string) string { return "drill." + name + ".work" }

// haveSent prepares the store of a dlo and then stops this dlo. In the prepared store, ten letters
// have been sent back, and ten letters wait in a paused queue.
func (g *ground) haveSent(ctx context.Context, name string) error {
	if err := g.open(ctx, name, g.storeConfig(name)); err != nil {
		return err
	}
	if err := g.site.declare(ctx, workOf(name), "x-dead-letter-exchange", "drill."+name+".dlx"); err != nil {
		return err
	}
	if err := g.sendBack(ctx, name, few); err != nil {
		return err
	}
	if err := g.setRetries(ctx, name, "pause"); err != nil {
		return err
	}
	if err := g.publishRejected(ctx, workOf(name), few); err != nil {
		return err
	}
	if err := waitUntil(
		ctx, "letters wait", readyWait, func() bool { return g.office(name).count(ctx, "state:scheduled") == few },
	); err != nil {
		return err
	}
	return g.stop(name)
}

// sendBack makes dlo send ten more letters back to a queue, and handles them as a worker would. The
// parameter "sent" is the expected number of letters that dlo has sent back in total after that.
func (g *ground) sendBack(ctx context.Context, name string, sent int) error {
	if err := g.publishRejected(ctx, workOf(name), few); err != nil {
		return err
	}
	if err := g.handleMessages(ctx, workOf(name), few); err != nil {
		return err
	}
	return waitUntil(
		ctx, "it is recorded", readyWait, func() bool { return g.office(name).count(ctx, "state:requeued") == sent },
	)
}

// handleMessages takes and acknowledges messages of a queue, until it has handled n of them.
func (g *ground) handleMessages(ctx context.Context, queue string, n int) error {
	var failed error
	err := waitUntil(ctx, "letters are sent back to "+queue, readyWait, func() bool {
		var took int
		took, failed = g.site.take(ctx, queue, n, true)
		n -= took
		return n <= 0 || failed != nil
	})
	return errors.Join(failed, err)
}

// setRetries pauses or resumes the retries of a queue. The parameter "verb" is "pause" or "resume".
func (g *ground) setRetries(ctx context.Context, name, verb string) error {
	return g.office(name).post(ctx, "/api/v1/queues/"+verb, map[string]string{"queue": workOf(name)})
}

// startResumed starts a dlo that the function haveSent has stopped, and resumes its retries.
func (g *ground) startResumed(ctx context.Context, name string) error {
	if _, err := g.start(ctx, name, g.storeConfig(name)); err != nil {
		return err
	}
	return g.setRetries(ctx, name, "resume")
}

// stillFor is how long the drill checks that no due letter is sent.
const stillFor = 3 * time.Second

// expectNothingSent waits for as long as the constant "stillFor" says. It returns an error if a dlo
// sends a letter in this time.
func (g *ground) expectNothingSent(ctx context.Context, name string) error {
	for end := time.Now().Add(stillFor); time.Now().Before(end); {
		n, err := g.site.take(ctx, workOf(name), workBatch, true)
		if err != nil {
			return err
		}
		if n > 0 {
			return fmt.Errorf("%d letters were sent, and nobody had let them", n)
		}
		if err := pause(ctx, workEvery); err != nil {
			return err
		}
	}
	return nil
}

// allSent reports whether dlo has sent back all letters that the function haveSent has prepared.
func (g *ground) allSent(ctx context.Context, name string) bool {
	return g.office(name).count(ctx, "state:requeued") == 2*few
}

// hasProblem reports whether /readyz lists a problem of the given kind.
func (o *office) hasProblem(kind deadletter.ProblemKind) bool {
	for _, p := range o.lastLook().problems {
		if p.Kind == string(kind) {
			return true
		}
	}
	return false
}

// forgetMark deletes the mark of a store in the broker. It returns the path of the note beside the
// store's file.
func (g *ground) forgetMark(ctx context.Context, name string) (note string, err error) {
	if note, err = g.noteOf(name); err != nil {
		return "", err
	}
	text, err := os.ReadFile(note)
	if err != nil {
		return "", err
	}
	p, err := deadletter.ParseProgress(text)
	if err != nil {
		return "", err
	}
	return note, g.site.drop(ctx, "queues", deadletter.MarkQueue(p.Store))
}

// beforeStoreRestored copies the store of a dlo. It then lets this dlo send and receive more
// letters.
func beforeStoreRestored(ctx context.Context, g *ground) error {
	const name = "restored"
	if err := g.haveSent(ctx, name); err != nil {
		return err
	}
	text, err := os.ReadFile(g.storeOf(name))
	if err != nil {
		return err
	}
	if err := os.WriteFile(g.storeOf(name)+".copy", text, 0o600); err != nil {
		return err
	}
	if err := g.startResumed(ctx, name); err != nil {
		return err
	}
	if err := g.handleMessages(ctx, workOf(name), few); err != nil {
		return err
	}
	if err := g.sendBack(ctx, name, 3*few); err != nil {
		return err
	}
	return g.stop(name)
}

// ofCopy is the query for letters that are held because their store was restored from a copy.
const ofCopy = "state:held doubt:restored"

// decideRestored cures the failure of a restored store in the way that the text of the problem
// describes. It requeues ten of the held letters and discards the others. It checks that only those
// ten arrive.
func decideRestored(ctx context.Context, g *ground, _ problem) error {
	const name = "restored"
	if err := g.expectNothingSent(ctx, name); err != nil {
		return err
	}
	o := g.office(name)
	if err := o.post(ctx, "/api/v1/operations", map[string]any{
		"action": "requeue", "q": ofCopy, "first": few, "reason": "the drill", "hold": "0s", "canary": 0,
	}); err != nil {
		return err
	}
	if err := g.handleMessages(ctx, workOf(name), few); err != nil {
		return err
	}
	if err := waitUntil(
		ctx, "it is recorded", readyWait, func() bool { return o.count(ctx, "state:requeued") == few },
	); err != nil {
		return err
	}
	if err := o.post(ctx, "/api/v1/operations", map[string]any{
		"action": "discard", "q": ofCopy, "reason": "the drill",
	}); err != nil {
		return err
	}
	return g.expectNothingSent(ctx, name)
}

// nothingHeld reports whether people have decided about all letters that were held because the
// store was restored. dlo reports for a day that the restored store lacks letters. As soon as no
// letter is held any more, the severity of this report is no longer "page".
func nothingHeld(ctx context.Context, g *ground) bool {
	o := g.office("restored")
	for _, p := range o.lastLook().problems {
		if p.Kind == string(deadletter.ProblemStoreRestored) && p.Severity == string(deadletter.SeverityPage) {
			return false
		}
	}
	return o.count(ctx, ofCopy) == 0 && o.count(ctx, "state:discarded") == few
}

var removedFile = regexp.MustCompile(`rm ("[^"]+")`)

// removeNamed removes the file that the cure of a problem names. The file must be a note in the
// folder of the drill.
func removeNamed(_ context.Context, g *ground, reported problem) error {
	m := removedFile.FindStringSubmatch(reported.Cure)
	if m == nil {
		return errNoCure
	}
	file, err := strconv.Unquote(m[1])
	if err != nil {
		return err
	}
	if filepath.Dir(file) != g.folder || !strings.Contains(file, ".db.progress-") {
		return fmt.Errorf("the command removes a file that is not a note: %s", file)
	}
	return os.Remove(file)
}
