package notify

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// slackEscape escapes the characters that Slack requires in every text. Only < and > can start a
// mention or a link.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// slackPlain returns a plain_text object, which Slack shows as it is.
func slackPlain(s string) *slackObject {
	if s == "" {
		s = " " // Slack rejects an empty text
	}
	emoji := false
	return &slackObject{Type: "plain_text", Text: slackEscape.Replace(s), Emoji: &emoji}
}

// slackLink returns a block with a link to a page of dlo.
func slackLink(url string) slackBlock {
	text := "<" + slackURL(url) + "|" + linkName(url) + ">"
	return slackBlock{Type: "context", Elements: []*slackObject{{Type: "mrkdwn", Text: text, Verbatim: true}}}
}

// slackURL escapes the characters that would end a link.
func slackURL(url string) string {
	return slackEscape.Replace(strings.NewReplacer("|", "%7C", "<", "%3C", ">", "%3E", " ", "%20").Replace(deadletter.Visible(url)))
}

// slackInert removes the effect of markup in a text. It is for services that are compatible with
// Slack's webhooks but ignore the blocks of a message and parse Markdown in its text. slackInert
// inserts an invisible word joiner after each character that could start a mention, a link or a
// style.
var slackInert = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
	"@", "@\u2060", "*", "*\u2060", "_", "_\u2060", "~", "~\u2060", "`", "`\u2060", "#", "#\u2060", "!", "!\u2060", "[",
	"[\u2060", "]", "]\u2060", "://", ":\u2060//", "www.", "www\u2060.", ":", ":\u2060",
)

// slackText returns the whole message as one text.
func slackText(m *Message) string {
	var b strings.Builder
	say := func(s string) {
		b.WriteString(slackInert.Replace(s))
		b.WriteByte('\n')
	}
	say(slackSeverity(m) + line(m.Title, titleBytes))
	if m.Text != "" {
		say(lines(m.Text, textBytes))
	}
	for _, f := range m.Facts {
		if f.Value != "" {
			say(line(f.Name, 50) + ": " + line(f.Value, factBytes))
		}
	}
	for i, l := range m.Lines {
		if i == slackLines {
			say("and " + countOf(len(m.Lines)-i, "further line"))
			break
		}
		say("- " + line(l.Title, titleBytes))
		if l.Text != "" {
			say(line(l.Text, factBytes))
		}
		b.WriteString("<" + slackURL(l.URL) + ">\n")
	}
	if m.URL != "" {
		b.WriteString("<" + slackURL(m.URL) + ">")
	}
	return strings.TrimSpace(b.String())
}

// slackSeverity returns the text with which the title of a message begins. Without such a text, all
// messages in a chat look alike. Therefore the text is "[page] " for a message with the severity
// "page", unless the message reports an end. For all other messages, the text is "".
func slackSeverity(m *Message) string {
	if m.Severity == deadletter.SeverityPage && m.Event != Resolves {
		return "[page] "
	}
	return ""
}
