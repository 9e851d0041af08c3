package notify

import (
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

func newTestSlack(t *testing.T, r *receiver) *Slack {
	t.Helper()
	s, err := NewSlack(SlackOptions{URL: r.URL + "/services/" + canary, AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatSlackGets(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, respondWith(200, "ok"))
	m := Compose(office, someDelivery(deadletter.NoticeOpened))
	if _, err := newTestSlack(t, r).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	q := r.receivedRequests()[0]
	if q.path != "POST /services/"+canary || q.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s as %s", q.path, q.header.Get("Content-Type"))
	}
	var got, want any
	if err := json.Unmarshal(q.body, &got); err != nil {
		t.Fatal(err)
	}
	text := got.(map[string]any)["text"].(string)
	wanted := `{"mrkdwn": false, "parse": "none", "link_names": false, "unfurl_links": false, "unfurl_media": false, "text": "", "blocks": [
	{"type": "header", "text": {"type": "plain_text", "emoji": false, "text": "[page] 312 letters dead in email-queue: template \"welcome_v3\" not found"}},
	{"type": "section", "text": {"type": "plain_text", "emoji": false, "text": "TemplateError: template \"welcome_v3\" not found\n  at render"}},
	{"type": "section", "fields": [
		{"type": "plain_text", "emoji": false, "text": "group\nG-418"}, {"type": "plain_text", "emoji": false, "text": "queue\nemail-queue"},
		{"type": "plain_text", "emoji": false, "text": "broker\nmain"}, {"type": "plain_text", "emoji": false, "text": "vhost\n/"},
		{"type": "plain_text", "emoji": false, "text": "reason\nrejected"}, {"type": "plain_text", "emoji": false, "text": "type\nacme.notify.v1.EmailRequested"},
		{"type": "plain_text", "emoji": false, "text": "letters\n312"}, {"type": "plain_text", "emoji": false, "text": "waiting\n4"},
		{"type": "plain_text", "emoji": false, "text": "since\n2026-11-20 13:58 UTC"}, {"type": "plain_text", "emoji": false, "text": "last\n2026-11-20 14:02 UTC"}]},
	{"type": "section", "fields": [{"type": "plain_text", "emoji": false, "text": "owner\nlena"}]},
	{"type": "context", "elements": [{"type": "mrkdwn", "verbatim": true, "text": "<https://dlo.example.com/groups/G-418|Open G-418>"}]}]}`
	if err := json.Unmarshal([]byte(wanted), &want); err != nil {
		t.Fatal(err)
	}
	want.(map[string]any)["text"] = text
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	read := strings.ReplaceAll(html.UnescapeString(text), "\u2060", "")
	if !strings.HasPrefix(read, "[page] "+m.Title+"\n") || !strings.HasSuffix(read, "<"+m.URL+">") ||
		!strings.Contains(read, "\nqueue: email-queue\n") {
		t.Errorf("the text is %q", read)
	}
}

func TestWhatSlackAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		answers   []func(http.ResponseWriter)
		permanent bool
		err       string
		requests  int
	}{
		{"ok", []func(http.ResponseWriter){respondWith(200, "ok")}, false, "", 1},
		{
			"blocks that it does not take",
			[]func(http.ResponseWriter){respondWith(400, "invalid_blocks"), respondWith(200, "ok")},
			false,
			"",
			2,
		},
		{
			"nothing that it takes",
			[]func(http.ResponseWriter){respondWith(400, "invalid_payload"), respondWith(400, "invalid_payload")},
			true,
			"the receiver answered 400 Bad Request (invalid_payload)",
			2,
		},
		{
			"no such webhook",
			[]func(http.ResponseWriter){respondWith(404, "no_service")},
			true,
			"the receiver answered 404 Not Found (no_service)",
			1,
		},
		{
			"not allowed",
			[]func(http.ResponseWriter){respondWith(403, "action_prohibited\n")},
			true,
			"the receiver answered 403 Forbidden (action_prohibited)",
			1,
		},
		{
			"archived",
			[]func(http.ResponseWriter){respondWith(410, "channel_is_archived")},
			true,
			"the receiver answered 410 Gone (channel_is_archived)",
			1,
		},
		{
			"an answer that repeats the secret",
			[]func(http.ResponseWriter){respondWith(404, canary)},
			true,
			"the receiver answered 404 Not Found",
			1,
		},
		{
			"too many",
			[]func(http.ResponseWriter){respondWith(429, "rate_limited", "Retry-After", "30")},
			false,
			"the receiver answered 429 Too Many Requests (rate_limited)",
			1,
		},
		{
			"broken",
			[]func(http.ResponseWriter){respondWith(500, "rollup_error")},
			false,
			"the receiver answered 500 Internal Server Error (rollup_error)",
			1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, c.answers...)
			_, err := newTestSlack(t, r).Send(t.Context(), Compose(office, someDelivery(deadletter.NoticeOpened)))
			if n := len(r.receivedRequests()); n != c.requests {
				t.Errorf("%d requests", n)
			}
			if err == nil && c.err == "" {
				return
			}
			if err == nil || err.Error() != c.err || errors.Is(err, ErrPermanent) != c.permanent {
				t.Errorf("got %v, want %q", err, c.err)
			}
			var later *LaterError
			if errors.As(err, &later) != (c.name == "too many") || later != nil && later.After != 30*time.Second {
				t.Errorf("got %#v", later)
			}
		})
	}
}

// plainSlack fails the test if text from a letter could have an effect as markup.
func plainSlack(t *testing.T, p slackPayload, urls map[string]bool) {
	t.Helper()
	size := 0
	object := func(o *slackObject, most int) {
		size += len(o.Text)
		if n := len([]rune(html.UnescapeString(o.Text))); n > most || n == 0 {
			t.Errorf("%d characters where there may be %d", n, most)
		}
		isVisible(t, o.Text, "\n\t")
		switch o.Type {
		case "plain_text":
			if strings.ContainsAny(o.Text, "<>") || o.Emoji == nil || *o.Emoji {
				t.Errorf("not plain: %.200q", o.Text)
			}
		case "mrkdwn":
			url, name, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(o.Text, "<"), ">"), "|")
			if !ok || !urls[html.UnescapeString(url)] || name != linkName(url) || !o.Verbatim {
				t.Errorf("markup that is not ours: %.200q", o.Text)
			}
		default:
			t.Errorf("an object of type %q", o.Type)
		}
	}
	if len(p.Blocks) > 50 {
		t.Errorf("%d blocks", len(p.Blocks))
	}
	for _, b := range p.Blocks {
		if b.Type == "header" {
			object(b.Text, 150)
		} else if b.Text != nil {
			object(b.Text, 3000)
		}
		if len(b.Fields) > 10 || len(b.Elements) > 10 {
			t.Errorf("%d fields, %d elements", len(b.Fields), len(b.Elements))
		}
		for _, o := range append(b.Fields, b.Elements...) {
			object(o, 2000)
		}
	}
	if size > 60_000 { // size in escaped form; Slack counts characters
		t.Errorf("%d bytes of blocks", size)
	}
	if p.Markdown || p.Parse != "none" || p.LinkNames {
		t.Error("Slack may look for markup")
	}
	for _, piece := range strings.Split(p.Text, "<")[1:] {
		if url, _, ok := strings.Cut(piece, ">"); !ok || !urls[html.UnescapeString(url)] {
			t.Errorf("a tag that is not ours: %.100q", piece)
		}
	}
	for _, begin := range []string{"@channel", "@here", "@everyone", "<!", "](", "**", "``"} {
		if strings.Contains(p.Text, begin) {
			t.Errorf("%q is in the text", begin)
		}
	}
	rest := p.Text
	for u := range urls {
		rest = strings.ReplaceAll(rest, "<"+slackURL(u)+">", "")
	}
	if strings.Contains(rest, "://") || strings.Contains(rest, "www.") {
		t.Errorf("a link that is not ours in %.200q", rest)
	}
	isVisible(t, p.Text, "\n\t\u2060")
	if n := len([]rune(p.Text)); n > 40_000 {
		t.Errorf("%d characters of text", n)
	}
}

var ourURLs = map[string]bool{"https://dlo.example.com/groups/G-418": true, "https://dlo.example.com/groups/G-7": true}

func TestHostileTextsAreTextInSlack(t *testing.T) {
	t.Parallel()
	for _, m := range hostileMessages() {
		plainSlack(t, slackMessage(&m), ourURLs)
	}
}

func FuzzSlack(f *testing.F) {
	for _, h := range hostile {
		f.Add(h[:min(len(h), 4096)], "and this")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		m := hostileMessage(a, b)
		plainSlack(t, slackMessage(&m), ourURLs)
	})
}
