package web

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/rules"
)

// allYAML returns a set of rules as YAML that can be pasted into a configuration file.
func allYAML(set *rules.Set) string {
	text := ""
	if len(set.Rules) > 0 {
		text = "rules:\n"
	}
	for _, r := range set.Rules {
		text += "  - " + strings.ReplaceAll(r.YAML, "\n", "\n    ") + "\n"
	}
	return text + "default:\n  " + strings.ReplaceAll(defaultYAML(set.Default), "\n", "\n  ") + "\n"
}

// defaultYAML returns the default rule as YAML. It writes every setting, so that nothing is lost
// when the text is pasted into a file.
func defaultYAML(r rules.Rule) string {
	text := "retry: " + retryYAML(cmp.Or(r.Retry, &rules.Retry{}))
	var dead []string
	if r.Severity != "" {
		dead = append(dead, "severity: "+string(r.Severity))
	}
	if len(r.Notify) > 0 {
		dead = append(dead, "notify: ["+strings.Join(r.Notify, ", ")+"]")
	}
	if len(dead) > 0 {
		text += "\ndead: {" + strings.Join(dead, ", ") + "}"
	}
	if r.InDoubt != "" {
		text += "\nin_doubt: " + r.InDoubt
	}
	if r.Watch > 0 {
		text += "\nwatch: " + r.Watch.String()
	}
	if r.Rate != nil {
		text += "\nrate: " + strconv.FormatFloat(*r.Rate, 'g', -1, 64)
	}
	if r.MirrorXDeath {
		text += "\nmirror_x_death: true"
	}
	return text
}

func retryYAML(retry *rules.Retry) string {
	text := "{"
	if retry.Count() > 0 && len(retry.Delays) == 0 {
		text += "attempts: " + strconv.Itoa(retry.Attempts) + ", first: " + retry.First.String() + ", factor: " +
			strconv.FormatFloat(max(1, retry.Factor), 'g', -1, 64)
		if retry.Max > 0 {
			text += ", max: " + retry.Max.String()
		}
	} else {
		text += "delays: [" + strings.Join(each(retry.Delays, time.Duration.String), ", ") + "]"
	}
	if retry.Jitter > 0 {
		text += ", jitter: " + strconv.FormatFloat(retry.Jitter, 'g', -1, 64)
	}
	if retry.Waiter.Broker() {
		text += ", waiter: " + string(retry.Waiter)
	}
	return text + "}"
}
