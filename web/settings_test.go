package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web"
)

// fileInMemory is a configuration file whose settings can be changed.
type fileInMemory struct {
	text    string
	unsaved string // why it cannot be saved
	book    *rules.Book
	by      []string // who has saved it
}

func (f *fileInMemory) ChangeSetting(
	_ context.Context, by deadletter.Principal, to deadletter.Setting, digest string,
) (deadletter.SettingChange, *rules.Set, error) {
	c, cfg, err := config.Change("/etc/dlo.yaml", f.text, to, func(string) string { return "" })
	if f.unsaved != "" {
		c.Unsaved = f.unsaved
	}
	switch {
	case err != nil || digest == "":
	case digest != c.Digest || c.Unsaved != "":
		err = fmt.Errorf("%w: the file has changed", deadletter.ErrConflict)
	default:
		f.text, f.by, c.Saved = c.Now, append(f.by, by.Name), true
		f.book.Replace(&cfg.Rules)
	}
	return c, &cfg.Rules, err
}

const settingsFile = `# of the team
channels: {oncall: {alertmanager: {url: "https://ops.example.com"}}, team: {alertmanager: {url: "https://team.example.com"}}}
rules:
  - name: sms
    match: {queue: sms}
    retry:
      delays: [5s, 30s] # the carrier
  - {name: noise, match: {queue: noise}, discard: true}
`

// withSettings gives a test the configuration file settingsFile.
func withSettings(t *testing.T, f *fileInMemory) func(*web.Options) {
	cfg, err := config.Parse("/etc/dlo.yaml", settingsFile, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return func(o *web.Options) {
		o.Rules.Replace(&cfg.Rules)
		f.text, f.book, o.Settings = settingsFile, o.Rules, f
	}
}

// digestOf returns the digest that a page sends when its button saves.
func digestOf(t *testing.T, page string) string {
	t.Helper()
	m := regexp.MustCompile(`name="digest" value="([0-9a-f]+)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no button saves: %.2000s", page)
	}
	return m[1]
}

// TestSettingsAreChangedOnAPage changes each of the settings by the forms of the page: the page
// shows the difference and what becomes of stored letters, and then saves it.
func TestSettingsAreChangedOnAPage(t *testing.T) {
	t.Parallel()
	f := &fileInMemory{}
	h := open(t, withSettings(t, f))
	h.receive("sms", 3, "x")
	for _, c := range []struct {
		at     string
		form   url.Values
		on     []string
		in     string
		result string
	}{
		{
			"/settings?rule=sms",
			url.Values{"setting": {"delays"}, "rule": {"sms"}, "delays": {"1s, 2m"}},
			[]string{"Delays of rule sms", `value="5s, 30s"`},
			"retry:\n      delays: [1s, 2m] # the carrier\n",
			"Saved, and in use",
		},
		{
			"/settings?rule=sms",
			url.Values{"setting": {"dead"}, "rule": {"sms"}, "severity": {"page"}, "notify": {"oncall", "team"}},
			[]string{"Severity and notify of sms", "as the default"},
			"# the carrier\n    dead: {severity: page, notify: [oncall, team]}\n", "Saved, and in use",
		},
		{
			"/settings?broker=main&vhost=%2F&queue=email",
			url.Values{"setting": {"delays"}, "place": {"broker=main&vhost=%2F&queue=email"}, "delays": {""}},
			[]string{"Delays of queue email", `value="10s, 1m40s, 16m40s"`},
			"discard: true}\n  - name: delays of email\n    match: {queue: email, reason: [rejected, delivery_limit]}\n    retry: {delays: []}\n",
			"Saved, and in use",
		},
		{
			"/settings?field=order.%27id%27",
			url.Values{"setting": {"fields"}, "fields": {"customer.id\r\norder.no\r\n"}},
			[]string{"order.&#39;id&#39;</textarea>"},
			"\nsearch: {fields: [customer.id, order.no]}\n",
			"Saved, and in use",
		},
	} {
		h.get(c.at).want(t, 200, c.on...)
		before := f.text
		page := h.post("/settings", c.form).want(t, 200, "Nothing is saved yet", `class="add"`, "Save and apply")
		if tested := strings.Contains(page.text, `data-testid="tried"`); tested == (c.form.Get("setting") == "fields") {
			t.Errorf("%s: tested is %v", c.at, tested)
		}
		if f.text != before {
			t.Error("a check has saved the file")
		}
		c.form.Set("digest", digestOf(t, page.text))
		h.post("/settings", c.form).want(t, 200, c.result)
		if !strings.Contains(f.text, c.in) || !strings.HasPrefix(f.text, "# of the team\n") {
			t.Errorf("the file is\n%s", f.text)
		}
		h.post("/settings", c.form).want(t, 400, `class="error"`) // the same change once more
	}
	if !slices.Equal(f.by, []string{"local", "local", "local", "local"}) {
		t.Errorf("saved by %q", f.by)
	}
	if rule, _ := f.book.Set().Named("sms"); rule.Severity != deadletter.SeverityPage || len(f.book.Set().Rules) != 3 {
		t.Errorf("%+v", f.book.Set().Rules)
	}
}

// TestASettingThatCannotBeSaved checks that each mistake is beside its field, and that the page has
// the text to copy if dlo cannot save the change.
func TestASettingThatCannotBeSaved(t *testing.T) {
	t.Parallel()
	f := &fileInMemory{}
	h := open(t, withSettings(t, f))
	for field, form := range map[string]url.Values{
		"delays":   {"setting": {"delays"}, "rule": {"sms"}, "delays": {"soon<b>"}},
		"severity": {"setting": {"dead"}, "rule": {"sms"}, "severity": {"${X}"}},
		"notify":   {"setting": {"dead"}, "rule": {"sms"}, "notify": {"nobody"}},
		"fields":   {"setting": {"fields"}, "fields": {"a.*"}},
		"rule":     {"setting": {"delays"}, "rule": {"gone"}, "delays": {"1s"}},
	} {
		page := h.post("/settings", form).want(t, 400, `id="rule-`+field+`-wrong"`)
		page.wantNot(t, "soon<b>")
	}
	h.post("/settings", url.Values{
		"setting": {"delays"}, "place": {"broker=main&vhost=%2F&queue=sms"}, "delays": {"1s"},
	}).want(t, 400, "Rule sms decides about this queue; change its delays.")
	change := url.Values{"setting": {"delays"}, "rule": {"sms"}, "delays": {"7s"}}
	change.Set("digest", "0")
	h.post("/settings", change).want(t, 409, "Nothing was saved: the file has changed.")
	change.Del("digest")
	f.unsaved = "/etc/dlo.yaml is not writable by dlo"
	h.post("/settings", change).want(
		t, 200, "/etc/dlo.yaml is not writable by dlo.", "as rule 1 of the list under rules", "- name: sms\n",
		"\n    delays: [7s] # the carrier",
	).wantNot(t, "Save and apply")
	h.postJSON("/api/v1/settings", `{"setting":"delays","rule":"sms","delays":["7s"]}`).want(t, 400, "digest is missing")
	h.postJSON("/api/v1/settings", `{"setting":"colour","dry_run":true}`).want(t, 400, "the settings are delays, dead and fields")
	if f.by != nil {
		t.Error("the file was saved")
	}
}

// TestWhoMaySaveSettings checks what the roles may do: a reader sees the change and the text to
// copy, and only an admin saves it. A person who is limited to some queues sees nothing of it.
func TestWhoMaySaveSettings(t *testing.T) {
	t.Parallel()
	f, who := &fileInMemory{}, deadletter.Principal{}
	h := open(t, withSettings(t, f), func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) { return who, nil }
	})
	h.receive("sms", 1, "x")
	const check = `{"setting":"delays","rule":"sms","delays":["7s"],"dry_run":true}`
	var change api.SettingChange
	save := func() string {
		text, _ := json.Marshal(map[string]any{
			"setting": "delays", "rule": "sms", "delays": []string{"7s"}, "digest": change.Digest,
		})
		return string(text)
	}
	who = deadletter.Principal{Name: "eda", Grants: []deadletter.Grant{{Role: deadletter.RoleEditor}}}
	h.postJSON("/api/v1/settings", check).want(t, 200).json(t, &change)
	if strings.Contains(change.YAML, "#") {
		t.Errorf("a comment of the file: %s", change.YAML)
	}
	if !strings.Contains(change.Unsaved, "eda may not save settings") || len(change.Diff) != 0 || change.Test == nil ||
		change.Test.Looked != 1 {
		t.Errorf("%+v", change)
	}
	h.postJSON("/api/v1/settings", save()).want(t, 403, "save settings")
	h.get("/settings").want(t, 200)
	h.get("/palette?q=indexed").want(t, 200, `"link":"/settings"`)
	who = teamA(deadletter.RoleAdmin)
	h.get("/settings").want(t, 403)
	h.postJSON("/api/v1/settings", check).want(t, 403)
	h.get("/palette?q=indexed").wantNot(t, "/settings")
	who = deadletter.Principal{Name: "vic", Grants: []deadletter.Grant{{Role: deadletter.RoleViewer}}}
	h.get("/settings").want(t, 403)
	h.get("/rules").want(t, 200).wantNot(t, "/settings")
	if f.by != nil {
		t.Errorf("%q has saved the file", f.by)
	}
	who = teamB
	who.Fixed = "read_only is set"
	h.postJSON("/api/v1/settings", save()).want(t, 403, "because read_only is set")
	h.post("/settings", url.Values{
		"setting": {"delays"}, "rule": {"sms"}, "delays": {"7s"}, "digest": {change.Digest},
	}).want(t, 403, "because read_only is set")
	if f.by != nil {
		t.Errorf("%q has saved the file", f.by)
	}
	who = teamB
	h.postJSON("/api/v1/settings", check).want(t, 200).json(t, &change)
	if change.Unsaved != "" || len(change.Diff) == 0 {
		t.Errorf("%+v", change)
	}
	h.postJSON("/api/v1/settings", save()).want(t, 200, `"saved":true`)
}

// TestPagesLeadToSettings checks the links to the forms: from a rule, from a queue, and from a
// search of a field that is not indexed.
func TestPagesLeadToSettings(t *testing.T) {
	t.Parallel()
	h := open(t, withSettings(t, &fileInMemory{}))
	h.receive("sms", 1, `{"customer": {"tenant": "t1"}}`)
	h.receive("email", 1, "x")
	h.get("/rules?rule=1").want(
		t, 200, `href="/settings?rule=sms#delays"`, `href="/settings?rule=sms#dead"`, `href="/settings#fields"`,
	)
	h.get("/rules?rule=2").wantNot(t, "rule=noise#")
	h.get("/queues/one?broker=main&vhost=/&queue=sms").want(t, 200, `href="/settings?rule=sms#delays"`)
	h.get("/queues/one?broker=main&vhost=/&queue=email").want(
		t, 200, `href="/settings?broker=main&amp;queue=email&amp;vhost=%2F#delays"`,
	)
	h.get("/letters?q=body.customer.tenant:t1").want(t, 200, `href="/settings?field=customer.tenant#fields">Index the field`)
}
