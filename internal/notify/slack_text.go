package notify

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// slackEscape escapes everything that Slack requires, in any text. Only < > can create a mention or
// a link.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// slackPlain returns text that is shown unchanged.
func slackPlain(s string) *slackObject {
	if s == "" {
		s = " " // Slack rejects empty objects
	}
	emoji := false
	return &slackObject{Type: "plain_text", Text: slackEscape.Replace(s), Emoji: &emoji}
}

// slackLink returns a block with one of our own links.
func slackLink(url string) slackBlock {
	text := "<" + slackURL(url) + "|" + linkName(url) + ">"
	return slackBlock{Type: "context", Elements: []*slackObject{{Type: "mrkdwn", Text: text, Verbatim: true}}}
}

// slackURL escapes characters that would end a link.
func slackURL(url string) string {
	return slackEscape.Replace(strings.NewReplacer("|", "%7C", "<", "%3C", ">", "%3E", " ", "%20").Replace(deadletter.Visible(url)))
}

// slackInert prevents text from acting as markup in services compatible with Slack's webhooks. Some
// of them parse Markdown in text and ignore blocks. An invisible word joiner follows each character
// that could start a mention, a link or a style.
var slackInert = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;",
	"@", "@\u2060", "*", "*\u2060", "_", "_\u2060", "~", "~\u2060", "`", "`\u2060", "#", "#\u2060", "!", "!\u2060", "[", "[\u2060", "]", "]\u2060", "://", ":\u2060//", "www.", "www\u2060.", ":", ":\u2060",
)

// slackText returns a whole message without blocks.
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

// slackSeverity returns a prefix that marks urgent messages, because a chat shows all messages
// alike.
func slackSeverity(m *Message) string {
	if m.Severity == deadletter.SeverityPage && m.Event != Resolves {
		return "[page] "
	}
	return ""
}
