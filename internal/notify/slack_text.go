package notify

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// slackEscape is all that Slack wants escaped, wherever text stands; a mention or a link is made
// with < > only.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// slackPlain is text that is shown as it is.
func slackPlain(s string) *slackObject {
	if s == "" {
		s = " " // empty objects are refused
	}
	emoji := false
	return &slackObject{Type: "plain_text", Text: slackEscape.Replace(s), Emoji: &emoji}
}

// slackLink is a line with a link of our own.
func slackLink(url string) slackBlock {
	text := "<" + slackURL(url) + "|" + linkName(url) + ">"
	return slackBlock{Type: "context", Elements: []*slackObject{{Type: "mrkdwn", Text: text, Verbatim: true}}}
}

// slackURL escapes what would end a link.
func slackURL(url string) string {
	return slackEscape.Replace(strings.NewReplacer("|", "%7C", "<", "%3C", ">", "%3E", " ", "%20").Replace(deadletter.Visible(url)))
}

// slackInert keeps text from being markup in whatever understands Slack's webhooks, some of which
// read Markdown in text and know no blocks: an invisible word joiner behind each character that
// could begin a mention, a link or a style.
var slackInert = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
	"@", "@\u2060", "*", "*\u2060", "_", "_\u2060", "~", "~\u2060", "`", "`\u2060", "#", "#\u2060", "!", "!\u2060", "[", "[\u2060", "]", "]\u2060", "://", ":\u2060//", "www.", "www\u2060.", ":", ":\u2060",
)

// slackText is the whole of a message without blocks.
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
			say("and " + counted(len(m.Lines)-i, "further line"))
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

// slackSeverity marks what is urgent, where a chat shows everything alike.
func slackSeverity(m *Message) string {
	if m.Severity == deadletter.SeverityPage && m.Event != Resolves {
		return "[page] "
	}
	return ""
}
