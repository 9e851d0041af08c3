package requeue_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/requeue"
)

// TestRefusalsAreTold checks two notices. One is about a letter that its queue has rejected three
// times in a row. The other is about a queue that has rejected every letter for an hour. After the
// queue accepts a letter, the hour must begin again.
func TestRefusalsAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, letters(2)...)
		d.letters[1].due = d.began.Add(90 * time.Minute)
		d.rules.Default.Notify = []string{"oncall"}
		d.options.Nack = requeue.Nack{
			First: 20 * time.Minute, Max: 20 * time.Minute, NoticeAfter: 3, NoticeAge: time.Hour,
		}
		d.wire.answer = func(p *deadletter.Publishing) answer {
			if string(p.Body) == "letter 2" {
				return answer{kind: deadletter.OutcomeConfirmed}
			}
			return answer{kind: deadletter.OutcomeNacked}
		}
		c := d.open()
		for range 15 {
			if _, err := c.dispatcher.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
		}
		var got []string
		for _, m := range d.shelf().marks {
			told := "nobody"
			if m.Notice != nil {
				told = fmt.Sprint(m.Notice.Key, m.Notice.Channels)
			}
			got = append(got, told)
		}
		// The broker rejects letter 1 every 20 minutes. The first five entries are its rejections
		// after 0, 20, 40, 60 and 80 minutes. The sixth entry is letter 2, which the broker accepts
		// after 90 minutes. The other entries are later rejections of letter 1.
		want := []string{
			"nobody", "nobody", "nacks main sms[oncall]", "nacking main sms[oncall]", "nacking main sms[oncall]",
			"nobody", "nobody", "nobody", "nobody",
		}
		if !slices.Equal(got, want) {
			t.Errorf("\n got %q\nwant %q", got, want)
		}
	})
}
