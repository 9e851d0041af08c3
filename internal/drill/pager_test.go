package drill

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestThePagerKnowsWhoTells checks that the pager of the drill knows which dlo a notice comes from.
// Two dlo processes report the same queue. While the pager is set to refuse notices of the channel
// "broken", it must not record them.
func TestThePagerKnowsWhoTells(t *testing.T) {
	t.Parallel()
	p, err := newPager()
	if err != nil {
		t.Fatal(err)
	}
	defer p.server.Close()
	began := time.Now()
	tell := func(path string) int {
		answer, err := http.Post(
			p.url+path, "application/json",
			strings.NewReader(
				`{"type":"notice.problem","data":{"title":"Inbox a is not read.","facts":{"queue":"a"}}}`,
			),
		)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	rang := func(office string, since time.Time) bool {
		_, ok := p.firstNotice(office, since, func(h heard) bool { return h.isAbout("Inbox a") && h.queue == "a" })
		return ok
	}
	p.rejectBroken(true)
	if tell("/second") != http.StatusNoContent || tell("/broken") != http.StatusServiceUnavailable {
		t.Error("only broken refuses")
	}
	if !rang("second", began) || rang("main", began) || rang("broken", began) ||
		rang("second", time.Now().Add(time.Minute)) {
		t.Errorf("%+v", p.heard)
	}
	p.rejectBroken(false)
	if tell("/broken") != http.StatusNoContent || !rang("broken", began) {
		t.Error("broken takes everything again")
	}
}
