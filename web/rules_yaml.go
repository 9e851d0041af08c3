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
	var b strings.Builder
	if len(set.Rules) > 0 {
		b.WriteString("rules:\n")
		for _, r := range set.Rules {
			text := r.YAML
			if strings.TrimSpace(text) == "" {
				text = "name: " + strconv.Quote(r.Name) + " # its text is not known here"
			}
			b.WriteString("  - " + strings.ReplaceAll(dedented(text), "\n", "\n    ") + "\n")
		}
	}
	text := set.Default.YAML
	if strings.TrimSpace(text) == "" {
		text = defaultYAML(set.Default)
	}
	return b.String() + "default:\n  " + strings.ReplaceAll(dedented(text), "\n", "\n  ") + "\n"
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

// dedented moves the YAML of one mapping to the left margin. It removes the dash if the mapping is
// an element of a list.
func dedented(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	for line, rest, _ := strings.Cut(
		text, "\n",
	); strings.TrimSpace(line) == "" && rest != ""; line, rest, _ = strings.Cut(text, "\n") {
		text = rest
	}
	lines := strings.Split(text, "\n")
	if strings.TrimSpace(lines[0]) == "-" && len(lines) > 1 { // the dash is on its own line
		lines = lines[1:]
	}
	first := strings.TrimLeft(lines[0], " ")
	margin, inside := -1, -1 // the smallest indentation of the later lines, and that of the first of them
	for _, line := range lines[1:] {
		if text := strings.TrimSpace(line); text == "" || text[0] == '#' { // comments may have any indentation
			continue
		}
		n := len(line) - len(strings.TrimLeft(line, " "))
		if inside < 0 {
			inside = n
		}
		if margin < 0 || n < margin {
			margin = n
		}
	}
	if !strings.HasPrefix(first, "- ") && strings.HasSuffix(strings.TrimSpace(first), ":") && margin == inside &&
		lines[0] == first {
		margin = 0 // the lines below belong to the key on the first line
	}
	lines[0] = strings.TrimLeft(strings.TrimPrefix(first, "- "), " ")
	for i, line := range lines[1:] {
		lines[i+1] = line[min(max(margin, 0), len(line)-len(strings.TrimLeft(line, " "))):]
	}
	return strings.Join(lines, "\n")
}
