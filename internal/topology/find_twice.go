package topology

import (
	"slices"
)

// takenTwice reports exchanges that route a message to several inboxes. dlo stores and retries a
// letter once for each inbox that it arrives in.
func (in *inspector) takenTwice() {
	for _, x := range in.s.Exchanges {
		for _, b := range in.net.from[x.Name] {
			if b.To != "queue" || !in.isInbox(b.Destination) {
				continue
			}
			r := in.net.route(x.Name, b.Key, nil)
			inboxes := slices.DeleteFunc(r.queues, func(name string) bool { return !in.isInbox(name) })
			if len(inboxes) < 2 || len(r.unknown) > 0 {
				continue
			}
			in.add(Finding{
				Kind: TakenTwice, Others: inboxes,
				Title: textf(
					"Exchange %s routes each dead letter to %d inboxes: %s", x.Name, len(inboxes), nameList(inboxes),
				),
				Loses: "nothing, but each letter is stored and retried once for each inbox, so consumers handle it more than once",
				Why:   "dlo drains all of these queues, and the broker puts a copy of the letter into each.",
				Cure: textf(
					"Remove the bindings of all but one of these queues from exchange %s. dlo binds the first entry of inboxes, so put dlo.letters there.",
					x.Name,
				),
			})
			break
		}
	}
}
