package web_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// watchKeys is a script that records each key press, with the row under the cursor and the selected
// rows. It also records every request that the page sends to the server. All entries are in the
// order in which they happen.
const watchKeys = `
const note = x => console.debug('dlo test: note ' + JSON.stringify({...x, on: performance.timeOrigin}));
const names = list => list.map(x => x.value).join(' ');
addEventListener('keydown', ev => {
	const menu = document.querySelector('details[data-menu][open]');
	note({
		key: ev.key, sends: document.activeElement.matches('dialog[open] [data-confirm-btn]'), ready: !!window.dlo?.keys.e, path: location.pathname, dialog: !!document.querySelector('dialog[open]'), field: ev.target.matches('input:not([type=checkbox]), select'),
		menu: menu ? menu.dataset.menu : '', here: document.querySelector('tr.is-here:not(.is-leaving) [data-pick]')?.value ?? '',
		can: [...document.querySelectorAll('[data-peek-source] [data-do="resolve"], [data-peek-source] button[value="requeue"]')].map(x => x.value).join(' '),
		ticked: names([...document.querySelectorAll('[data-row]:not(.is-leaving) [data-pick]:checked')]), undo: !!document.querySelector('.toast [data-undo], form.note.good [name=id]'),
	});
}, true);
const send = (to, body, leaves = false) => note({leaves, to: to.replace(/.*\/triage/, '/triage'), ids: [...new URLSearchParams(body).getAll('groups')].join(' '), does: new URLSearchParams(body).get('do') ?? ''});
const real = window.fetch;
window.asking = 0;
window.fetch = async (to, options) => {
	if (options?.method !== 'POST') return real(to, options);
	window.asking++;
	send(String(to), options.body);
	try { return await real(to, options); } finally { setTimeout(() => { window.asking--; }); }
};
addEventListener('submit', ev => {
	if (ev.defaultPrevented) return;
	if (ev.target.closest('#dlg-confirm')) { // the walk stays on this page
		ev.preventDefault();
		ev.target.closest('dialog').close();
		return note({to: '/operations'});
	}
	send(ev.submitter?.getAttribute('formaction') ?? ev.target.getAttribute('action'), new FormData(ev.target, ev.submitter), true);
});
`

// step is one entry that watchKeys has recorded: a key press with the state of the page, or a
// request.
type step struct {
	Key, Path, Menu, Here, Ticked string
	Can                           string // the actions that the page of a group offers
	Dialog, Field, Undo           bool
	Sends                         bool // Enter presses the button that sends
	Ready                         bool // the scripts of the page have run

	To, IDs, Does string
	Leaves        bool    // the request opens another page
	On            float64 // when the page was opened; tells pages apart
}

// rows returns the rows to which a decision applies if a person makes it by pressing a key. If rows
// are selected, the decision applies to these. Otherwise it applies to the row under the cursor.
func (s step) rows() string {
	if s.Ticked != "" {
		return s.Ticked
	}
	return s.Here
}

// TestKeysActOnWhatIsUnderTheCursor presses random keys in Triage while groups arrive and responses
// are delayed. Each request must be about the selected rows, or about the row that was under the
// cursor when its key was pressed. With DLO_SOAK=1, the test does this 50 times.
func TestKeysActOnWhatIsUnderTheCursor(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	seeds := 4
	if os.Getenv("DLO_SOAK") == "1" {
		seeds = 50
	}
	var decided atomic.Int64
	t.Cleanup(func() { // counts all walks together, because a single walk may spend its keys in dialogs and fields
		if !t.Failed() && !testing.Short() && decided.Load() < int64(5*seeds) {
			t.Errorf("%d requests in %d walks: they decide nothing", decided.Load(), seeds)
		}
	})
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			decided.Add(int64(walk(t, uint64(seed))))
		})
	}
}

// walk presses random keys on a page and returns how many requests the page sent.
func walk(t *testing.T, seed uint64) int {
	random := rand.New(rand.NewPCG(seed, 16))
	h, tab, url := visitThrough(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				// requests run at the same time, and random is not safe for that
				time.Sleep(rand.N(60 * time.Millisecond))
			}
			next.ServeHTTP(rw, r)
		})
	})
	for i := range 60 {
		h.receive(fmt.Sprintf("queue-%02d", i), 1, "x")
	}
	tab.OnEveryPage(watchKeys)
	tab.Open(url + "/triage")
	keys := []string{
		"j", "j", "j", "k", "x", "x", "e", "e", "r", "s", "a", "z", kb.Escape, kb.Escape, kb.Escape, kb.Enter, "Back",
		"Back",
	}
	for i := range 200 {
		key := keys[random.IntN(len(keys))]
		if i%20 == 10 {
			h.receive(fmt.Sprintf("new-%d", i), 1+random.IntN(3), "x")
		}
		switch {
		case key != "Back":
			tab.Do(chromedp.KeyEvent(key))
		case tab.Is("location.pathname.startsWith('/groups/')"): // the expression is false while a page is loading
			tab.Back()
		}
		if random.IntN(3) == 0 {
			eventually(t, tab, "document.readyState == 'complete' && !window.asking")
		}
	}
	eventually(t, tab, "document.readyState == 'complete' && !window.asking")
	var steps []step
	if err := json.Unmarshal([]byte("["+strings.Join(tab.Notes(), ",")+"]"), &steps); err != nil {
		t.Fatal(err)
	}
	decided := checkWalk(t, steps)
	for _, m := range tab.Console() {
		// the group has changed in the meantime
		if !strings.Contains(m, "/triage/undo") || !strings.Contains(m, "409") {
			t.Errorf("console: %s", m)
		}
	}
	return decided
}

// asked is a request that a page has to send after a key press.
type asked struct {
	key, to, ids string
	step         int
	on           float64 // the page
	perhaps      bool    // the page is being left, so that the request may be lost
}

// checkWalk checks that the page sent a request for each key that needs one, in the same order, and
// no other requests. It returns the number of requests.
func checkWalk(t *testing.T, steps []step) int {
	t.Helper()
	var wanted []asked
	aimed, decided := "", 0
	// pages that are being left, by a form or the link of a row: until the next one is there, a key
	// may do nothing
	left := map[float64]bool{}
	for i, s := range steps {
		if s.Key != "" {
			if r, ok := s.wants(aimed); ok {
				r.step, r.on, r.perhaps = i, s.On, left[s.On]
				wanted = append(wanted, r)
			}
			left[s.On] = left[s.On] || s.Key == "Enter" && !s.Field && !s.Dialog
			if !s.Dialog && !s.Field && (s.Key == "s" || s.Key == "a") {
				aimed = s.rows()
			}
			continue
		}
		left[s.On] = left[s.On] || s.Leaves
		for len(wanted) > 0 && wanted[0].perhaps && (wanted[0].on != s.On || wanted[0].to != s.To) {
			wanted = wanted[1:]
		}
		if len(wanted) == 0 {
			t.Fatalf("step %d: nobody asked for %s of %q: %s", i, s.To, s.IDs, trail(steps[max(0, i-6):i+1]))
		}
		r := wanted[0]
		wanted = wanted[1:]
		if s.To != r.to || r.to != "/triage/undo" && s.IDs != r.ids {
			t.Fatalf(
				"step %d: the key %s was about %q, and asked for %s of %q, want %s: %s", i, r.key, r.ids, s.To, s.IDs,
				r.to, trail(steps[max(0, r.step-3):i+1]),
			)
		}
		decided++
	}
	wanted = slices.DeleteFunc(wanted, func(r asked) bool { return r.perhaps })
	if len(wanted) > 0 {
		t.Errorf(
			"never asked for %s: %s", wanted[0].to,
			trail(steps[max(0, wanted[0].step-3):min(len(steps), wanted[0].step+4)]),
		)
	}
	return decided
}

// wants returns the request that the page must send after a key was pressed. The step s contains
// the key and the state of the page. The result is false if the page must send no request. The
// parameter "menuRows" holds the rows to which the open menu applies.
func (s step) wants(menuRows string) (asked, bool) {
	group, onGroup := strings.CutPrefix(s.Path, "/groups/")
	about := s.rows()
	if onGroup {
		about, menuRows = group, group
		if s.Key == "e" && !strings.Contains(s.Can, "resolve") || s.Key == "r" && !strings.Contains(s.Can, "requeue") {
			return asked{}, false
		}
	}
	switch {
	case s.Sends && s.Key == "Enter":
		return asked{key: s.Key, to: "/operations"}, true
	case s.Dialog, !s.Ready:
	case s.Field && s.Key == "Enter" && (s.Menu != "" || onGroup):
		return asked{key: s.Key, to: "/triage", ids: menuRows}, true
	case s.Field:
	case s.Key == "e" && about != "":
		return asked{key: s.Key, to: "/triage", ids: about}, true
	case s.Key == "r" && about != "":
		return asked{key: s.Key, to: "/triage/confirm", ids: about}, true
	case s.Key == "z" && s.Undo:
		return asked{key: s.Key, to: "/triage/undo"}, true
	}
	return asked{}, false
}

// trail returns the recorded steps as JSON, one step per line.
func trail(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		text, _ := json.Marshal(s) // strings and booleans always encode
		b.WriteString("\n\t" + string(text))
	}
	return b.String()
}
