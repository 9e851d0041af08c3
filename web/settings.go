package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

// Settings changes settings in the configuration file. With the digest of the file that the person
// saw, it saves the change.
type Settings interface {
	ChangeSetting(
		ctx context.Context, by deadletter.Principal, to deadletter.Setting, digest string,
	) (deadletter.SettingChange, *rules.Set, error)
}

type settingIn struct{ Body api.SettingRequest }

// changeSetting changes a setting in the configuration file. A dry run returns how the file would
// change, and what the changed rules would have done with the newest letters. The dry run also says
// why dlo cannot save the change, and has the text to copy instead. Without dry_run, the change is
// saved and applied if the caller is admin and the file still has the given digest.
func (w *Web) changeSetting(ctx context.Context, r *settingIn) (*reply[api.SettingChange], error) {
	in, by := r.Body, principal(ctx)
	allowed := deadletter.Allow(by, deadletter.VerbSettings, deadletter.Origin{})
	switch {
	case in.DryRun:
		in.Digest = ""
	case allowed != nil:
		return nil, allowed
	case in.Digest == "":
		return nil, invalid("digest is missing: make a dry run first, and send its digest")
	}
	if in.Queue != "" {
		rule := w.ruleOf(deadletter.Origin{Broker: in.Broker, VHost: in.VHost, Queue: in.Queue})
		if rule != rules.DefaultName {
			return nil, in.Wrong("rule " + deadletter.Visible(rule) + " decides about this queue; change its delays")
		}
		if len(w.Brokers()) == 1 { // the rule needs no further conditions
			in.Broker, in.VHost = "", ""
		}
	}
	c, set, err := w.Settings.ChangeSetting(ctx, by, in.Setting, in.Digest)
	if err != nil {
		return nil, err
	}
	out := api.SettingChange{SettingChange: c, Diff: []payload.DiffLine{}}
	if allowed != nil { // the comments of the file, and the lines around a change, are for admins only
		out.YAML, out.Unsaved = c.Plain, sentence(allowed, statusOf(allowed))
	} else if c.Now != "" {
		out.Diff = payload.Diff(c.Was, c.Now)
	}
	if in.DryRun && in.Key != deadletter.SettingFields {
		test, err := w.whatIf(ctx, by, set, "", view.WhatIfLetters)
		if err != nil {
			return nil, err
		}
		test.Notes, out.Test = []string{}, &test
	}
	return answer(out, nil)
}

// readSetting reads a form of the page Settings, or its button that saves.
func readSetting(r *http.Request, in *settingIn) error {
	b := &in.Body
	items := func(name, between string) []string {
		list := strings.Split(strings.NewReplacer(between, "\n").Replace(r.PostForm.Get(name)), "\n")
		list = each(list, strings.TrimSpace)
		return slices.DeleteFunc(list, func(item string) bool { return item == "" })
	}
	b.Delays, b.Fields, b.DryRun = items("delays", ","), items("fields", "\n"), b.Digest == ""
	if b.Notify == nil {
		b.Notify = []string{} // no box is checked
	}
	return nil
}

// settings handles GET /settings?rule=&queue=&field=. It changes nothing.
func (w *Web) settings(r *http.Request) (templ.Component, error) {
	return view.Settings(w.settingsPage(r, r.URL.Query())), nil
}

// settingsPage returns the page with the rule or the queue of a form, and with the values in use
// where the form has none.
func (w *Web) settingsPage(r *http.Request, form url.Values) view.SettingsPage {
	set := w.Rules.Set()
	p := view.SettingsPage{
		Shell: w.shell(r, "Settings", view.SectionRules), Set: set, Rule: &set.Default, Posted: r.PostForm,
		Queue:    deadletter.Origin{Broker: form.Get("broker"), VHost: form.Get("vhost"), Queue: form.Get("queue")},
		Mistakes: map[string]string{},
	}
	if rule, ok := set.Named(form.Get("rule")); ok {
		p.Rule = rule
	}
	fields := set.Fields
	if field := form.Get("field"); field != "" && !slices.Contains(fields, field) {
		fields = append(slices.Clip(fields), field)
	}
	retry := set.Retries(p.Rule, deadletter.ReasonRejected)
	var delays []string
	if p.Retries = retry.Count(); p.Retries <= view.DelaysTyped {
		for n := range p.Retries {
			delays = append(delays, retry.Delay(n).String())
		}
	}
	p.Form = url.Values{
		"delays": {strings.Join(delays, ", ")}, "fields": {strings.Join(fields, "\n")},
		"severity": {string(p.Rule.Severity)}, "notify": p.Rule.Notify,
	}
	maps.Copy(p.Form, r.PostForm)
	return p
}

// showSetting returns the page with the change that a form asks for, or has saved.
func (w *Web) showSetting(r *http.Request, out *reply[api.SettingChange]) (templ.Component, error) {
	p := w.settingsPage(r, r.PostForm)
	p.Change, p.Diff, p.WhatIf = &out.Body.SettingChange, out.Body.Diff, out.Body.Test
	return view.Settings(p), nil
}

// settingAgain shows a form again, with each mistake beside its field.
func (w *Web) settingAgain(r *http.Request, wrong error) (templ.Component, error) {
	p := w.settingsPage(r, r.PostForm)
	fields, ok := errors.AsType[deadletter.FieldErrors](wrong)
	for _, f := range fields {
		p.Mistakes[f.Field] = mistakeText(f)
	}
	if !ok {
		p.Problem = sentence(wrong, statusOf(wrong))
	}
	return view.Settings(p), nil
}
