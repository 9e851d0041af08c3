package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// SlackOptions contains the settings of a Slack channel.
type SlackOptions struct {
	URL          string // URL of the incoming webhook; a secret
	AllowPrivate bool
}

// Slack sends messages to an incoming webhook of Slack or of a compatible service.
type Slack struct{ client *client }

// NewSlack checks the options and returns a Slack.
func NewSlack(o SlackOptions) (*Slack, error) {
	c, err := newClient(o.URL, o.AllowPrivate)
	if err != nil {
		return nil, err
	}
	return &Slack{client: c}, nil
}

// Channel returns the settings of a Slack channel.
func (s *Slack) Channel() Channel { return Channel{Sender: s, Together: true} }

// Send sends a message. Slack rejects a message permanently with the status 400 (bad format), 403
// (not permitted), 404 (channel or webhook does not exist) or 410 (archived); see docs.slack.dev,
// incoming webhooks.
func (s *Slack) Send(ctx context.Context, m Message) (string, error) {
	a, err := s.client.postJSON(ctx, slackMessage(&m))
	if err == nil && a.status == http.StatusBadRequest { // Slack rejects the layout, so the text is sent without layout
		a, err = s.client.postJSON(ctx, slackPayload{Text: slackText(&m), Parse: "none"})
	}
	if err != nil {
		return "", err
	}
	err = a.err(400, 401, 403, 404, 405, 410, 413)
	if why := slackWord(a.body); err != nil && why != "" {
		switch text := fmt.Sprintf("%s (%s)", err, why); {
		case errors.Is(err, ErrPermanent):
			return "", permanentError("%s", text)
		case a.later > 0:
			return "", &LaterError{After: a.later, Err: errors.New(text)}
		default:
			return "", errors.New(text)
		}
	}
	return a.text(), err
}

// slackWord returns the response of Slack if it is one of the error words that Slack documents. For
// any other response it returns "", because an error message that people see must contain no
// unknown text.
func slackWord(body []byte) string {
	word := strings.TrimSpace(string(body[:min(len(body), 100)]))
	switch word {
	case "invalid_payload", "invalid_blocks", "invalid_blocks_format", "no_text", "no_service", "no_service_id", "no_team", "team_disabled", "invalid_token", "user_not_found", "channel_not_found",
		"channel_is_archived", "action_prohibited", "posting_to_general_channel_denied", "too_many_attachments", "rollup_error", "rate_limited":
		return word
	}
	return ""
}

type slackPayload struct {
	Text        string       `json:"text"` // if there are blocks, the text of the notification on the screen
	Blocks      []slackBlock `json:"blocks,omitempty"`
	Markdown    bool         `json:"mrkdwn"`
	Parse       string       `json:"parse"`
	LinkNames   bool         `json:"link_names"`
	UnfurlLinks bool         `json:"unfurl_links"`
	UnfurlMedia bool         `json:"unfurl_media"`
}

type slackBlock struct {
	Type     string         `json:"type"`
	Text     *slackObject   `json:"text,omitempty"`
	Fields   []*slackObject `json:"fields,omitempty"`
	Elements []*slackObject `json:"elements,omitempty"`
}

type slackObject struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Emoji    *bool  `json:"emoji,omitempty"`    // only for plain_text: whether :x: becomes an emoji
	Verbatim bool   `json:"verbatim,omitempty"` // only for mrkdwn: names and addresses are not turned into links
}

// Slack accepts at most 50 blocks, 3,000 characters per text, 10 fields of 2,000 characters, and
// 150 characters in a header. It also rejects blocks with more than about 13,000 characters in
// total.
const (
	slackHeader = 140
	slackFields = 10
	slackLines  = 20
	slackLine   = 450
)

// slackMessage converts a message to the blocks of Slack. Texts that may come from letters are only
// in plain_text objects, which have no markup. Every link is made by dlo.
func slackMessage(m *Message) slackPayload {
	p := slackPayload{Text: slackText(m), Parse: "none"}
	title := line(m.Title, titleBytes)
	header := title
	if len(header) > slackHeader {
		header = slackSeverity(m) + "Dead Letter Office"
	} else {
		header, title = slackSeverity(m)+header, ""
	}
	p.Blocks = append(p.Blocks, slackBlock{Type: "header", Text: slackPlain(header)})
	body := title
	if m.Text != "" {
		body = strings.TrimSpace(body + "\n" + lines(m.Text, textBytes))
	}
	if body != "" {
		p.Blocks = append(p.Blocks, slackBlock{Type: "section", Text: slackPlain(body)})
	}
	var fields []*slackObject
	for _, f := range m.Facts {
		if f.Value != "" {
			fields = append(fields, slackPlain(line(f.Name, 50)+"\n"+line(f.Value, factBytes)))
		}
	}
	for len(fields) > 0 {
		n := min(slackFields, len(fields))
		p.Blocks = append(p.Blocks, slackBlock{Type: "section", Fields: fields[:n]})
		fields = fields[n:]
	}
	shown := m.Lines[:min(len(m.Lines), slackLines)]
	for _, l := range shown {
		text := line(l.Title, titleBytes)
		if l.Text != "" {
			text += "\n" + line(l.Text, factBytes)
		}
		p.Blocks = append(p.Blocks, slackBlock{
			Type: "section",
			Text: slackPlain(deadletter.Cut(text, slackLine)),
		}, slackLink(l.URL))
	}
	if len(shown) < len(m.Lines) {
		p.Blocks = append(p.Blocks, slackBlock{
			Type: "section",
			Text: slackPlain("and " + countOf(len(m.Lines)-len(shown), "further line")),
		})
	}
	if m.URL != "" {
		p.Blocks = append(p.Blocks, slackLink(m.URL))
	}
	return p
}
