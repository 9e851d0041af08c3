package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// officeFailures lists the failures of a dlo process, of its disk or of its configuration. For most
// of them, the drill starts a dlo of its own. The failures of a restored store are in
// storeFailures.
var officeFailures = []Failure{
	{
		Name: "renamed", Does: "a broker has another name in the configuration, and letters wait", wants: sign{
			office:   "renamed",
			kind:     deadletter.ProblemBrokerUnknown,
			severity: deadletter.SeverityPage,
			broker:   "before",
			says:     "belong",
		},
		before: beforeRenamed,
		make:   func(ctx context.Context, g *ground) error { return g.startRenamed(ctx, "name: after") },
		cure:   takeOver,
	},
	{
		Name: "second-dlo", Does: "two dlo read the same inbox; the first is stopped", wants: sign{
			office:   "second",
			kind:     deadletter.ProblemInboxNotRead,
			severity: deadletter.SeverityPage,
			about:    "drill.second-dlo",
			says:     "another",
		},
		before: func(ctx context.Context, g *ground) error {
			return g.open(ctx, "first", g.config("first", g.entry("first", ownInbox("drill.second-dlo")), ""))
		},
		make: func(ctx context.Context, g *ground) error {
			_, err := g.start(ctx, "second", g.config("second", g.entry("second", ownInbox("drill.second-dlo")), ""))
			return err
		},
		cure: func(ctx context.Context, g *ground, _ problem) error { return g.stop("first") },
	},
	{
		Name: "store-locked", Does: "a second dlo is started on a link to the store of a first", wants: sign{exit: 4},
		before: func(ctx context.Context, g *ground) error {
			return g.open(ctx, "locked", g.config("locked", g.entry("locked", ownInbox("drill.store-locked")), ""))
		},
		make: func(ctx context.Context, g *ground) error {
			if err := os.Symlink(
				filepath.Join(g.folder, "locked.db"), filepath.Join(g.folder, "linked.db"),
			); err != nil {
				return err
			}
			_, err := g.start(ctx, "linked", g.config("linked", g.entry("locked", ownInbox("drill.store-locked")), ""))
			return err
		},
	},
	{
		Name: "disk",
		Does: "the disk of the store has less room than disk.stop_below asks for; it is lowered",
		wants: sign{
			office:   "disk",
			kind:     deadletter.ProblemDisk,
			severity: deadletter.SeverityPage,
			says:     "the disk is nearly full",
		},
		make: func(ctx context.Context, g *ground) error { return g.startWithDisk(ctx, ", stop_below: 1000000GiB") },
		cure: func(ctx context.Context, g *ground, _ problem) error {
			if err := g.stop("disk"); err != nil {
				return err
			}
			return g.startWithDisk(ctx, "")
		},
	},
	{
		Name: "near-limit",
		Does: "letters of an inbox whose delivery limit is accepted have used up half of it",
		cure: byItself,
		wants: sign{
			office:   "near",
			kind:     deadletter.ProblemNearLimit,
			severity: deadletter.SeverityPage,
			about:    "drill.near-limit",
		},
		before: beforeNearLimit,
		make: func(ctx context.Context, g *ground) error {
			_, err := g.start(
				ctx, "near",
				g.config(
					"near", g.entry("near", ownInbox("drill.near-limit")+", accept_limited: [drill.near-limit]"), "",
				),
			)
			return err
		},
		mended: func(ctx context.Context, g *ground) bool { return g.office("near").count(ctx, "") == few },
	},
	{
		Name: "waiter",
		Does: "the queue in which letters wait for a retry is there with other properties; it is deleted",
		wants: sign{
			office:   "waiter",
			kind:     deadletter.ProblemWaiter,
			severity: deadletter.SeverityNotify,
			says:     waitQueue + " exists with other properties",
		},
		before: func(ctx context.Context, g *ground) error { return g.site.declare(ctx, waitQueue) },
		make: func(ctx context.Context, g *ground) error {
			_, err := g.start(
				ctx, "waiter",
				g.config(
					"waiter", g.entry("waiter", ownInbox("drill.waiter")),
					"rules: [{name: waits, match: {}, retry: {delays: [3m], waiter: wait-queue}, "+pages+"}]\n",
				),
			)
			return err
		},
		cure: func(ctx context.Context, g *ground, _ problem) error { return g.site.drop(ctx, "queues", waitQueue) },
	},
	{
		Name: "notices",
		Does: "the receiver of a channel takes nothing; it takes everything again",
		work: "drill.notices",
		rule: "retry: {delays: []}, dead: {severity: page, notify: [broken]}",
		wants: sign{
			kind:     deadletter.ProblemNotices,
			severity: deadletter.SeverityPage,
			says:     "do not get through to broken",
		},
		make: func(ctx context.Context, g *ground) error {
			g.pager.rejectBroken(true)
			return g.publishRejected(ctx, "drill.notices", 1)
		},
		cure: func(_ context.Context, g *ground, _ problem) error { g.pager.rejectBroken(false); return nil },
	},
}

// waitQueue is the queue in which letters wait for three minutes.
const waitQueue = "dlo.wait.180000"

// ownInbox returns the settings of a broker entry that declares and drains one inbox.
func ownInbox(inbox string) string {
	return fmt.Sprintf("exchange: %s.dlx, inboxes: [%s], annotations: \"\"", inbox, inbox)
}

// startRenamed starts a dlo whose broker has been renamed. The parameter "names" is YAML that sets
// the name and the earlier names of the broker in the configuration.
func (g *ground) startRenamed(ctx context.Context, names string) error {
	if err := g.stop("renamed"); err != nil {
		return err
	}
	entry := strings.Replace(g.entry("NAME", ownInbox("drill.renamed")), "name: NAME", names, 1)
	_, err := g.start(ctx, "renamed", g.config("renamed", entry, ""))
	return err
}

// beforeRenamed starts a dlo under the first name of the broker. It waits until letters of this
// broker wait for a retry.
func beforeRenamed(ctx context.Context, g *ground) error {
	if err := g.startRenamed(ctx, "name: before"); err != nil {
		return err
	}
	o := g.office("renamed")
	if err := waitUntil(
		ctx, "the inbox is read", readyWait, func() bool { return o.lastLook().inboxes["drill.renamed"] },
	); err != nil {
		return err
	}
	if err := g.site.declare(ctx, "drill.renamed.work", "x-dead-letter-exchange", "drill.renamed.dlx"); err != nil {
		return err
	}
	if err := g.publishRejected(ctx, "drill.renamed.work", few); err != nil {
		return err
	}
	return waitUntil(ctx, "letters wait", readyWait, func() bool { return o.count(ctx, "state:scheduled") == few })
}

var wasOf = regexp.MustCompile(`was: \[[^\]]*\]`)

// takeOver cures the failure in which a broker was renamed in the configuration, so that its
// letters are not sent. The text of the problem names a setting with the former name. takeOver
// starts a dlo with this setting.
func takeOver(ctx context.Context, g *ground, reported problem) error {
	line := wasOf.FindString(reported.Cure)
	if line == "" {
		return errNoCure
	}
	return g.startRenamed(ctx, "name: after, "+line)
}

// startWithDisk starts a dlo for the drill of a full disk. The parameter "guard" is YAML that is
// added to the section "disk" of its configuration.
func (g *ground) startWithDisk(ctx context.Context, guard string) error {
	config := g.config("disk", g.entry("disk", ownInbox("drill.disk")), "")
	_, err := g.start(ctx, "disk", strings.Replace(config, "disk: {reserve: 1MiB", "disk: {reserve: 1MiB"+guard, 1))
	return err
}

// deliveryLimit is the delivery limit of the queue that beforeNearLimit declares.
const deliveryLimit = 4

// beforeNearLimit publishes letters to a queue and uses up half of the deliveries of the first
// letter.
func beforeNearLimit(ctx context.Context, g *ground) error {
	const queue = "drill.near-limit"
	if err := g.site.declare(ctx, queue, "x-queue-type", "quorum", "x-delivery-limit", deliveryLimit); err != nil {
		return err
	}
	if err := g.site.publish(ctx, queue, few, nil); err != nil {
		return err
	}
	return g.o.Lose(ctx, g.amqp(), queue, deliveryLimit/2)
}
