package testenv

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
)

// axe is axe-core, which finds accessibility faults in a page; see testdata/vendor.txt.
//
//go:embed testdata/axe.min.js
var axe string

// Axe returns the accessibility faults that axe-core finds in the current page. Each string
// describes one violated rule and the elements that violate it. If the page has no faults, the
// slice is empty. Axe checks only the given rules. Without rules, it checks every rule that
// axe-core 4.14.1 enables by default, and target-size (WCAG 2.2 AA).
//
// The script is injected through the devtools protocol. The content security policy of the page
// therefore does not apply to it and stays as it is.
func (b *Tab) Axe(only ...string) []string {
	b.t.Helper()
	if !Run(b, chromedp.Evaluate[bool]("typeof axe == 'object'")) { // loads axe-core unless it is already on the page
		b.Do(chromedp.Evaluate[chromedp.Void](axe + ";undefined"))
	}
	options := map[string]any{
		"resultTypes": []string{"violations"},
		"preload":     false, // with preload, axe-core would load every style sheet again, for experimental rules only
	}
	if len(only) > 0 {
		options["runOnly"] = only
	} else {
		options["rules"] = map[string]any{"target-size": map[string]bool{"enabled": true}}
	}
	text, err := json.Marshal(options)
	if err != nil {
		b.t.Fatal(err)
	}
	violations := Run(b, chromedp.Evaluate[[]struct {
		ID     string `json:"id"`
		Impact string `json:"impact"`
		Help   string `json:"help"`
		Nodes  []struct {
			Target []any  `json:"target"` // CSS selectors; a nested list leads into a shadow tree
			HTML   string `json:"html"`
		} `json:"nodes"`
	}](fmt.Sprintf(`axe.run(document, %s).then(r => r.violations)`, text), chromedp.EvalAwaitPromise))
	var faults []string
	for _, v := range violations {
		var s strings.Builder
		fmt.Fprintf(&s, "%s (%s): %s", v.ID, v.Impact, v.Help)
		for _, n := range v.Nodes {
			fmt.Fprintf(&s, "\n\t%v: %s", n.Target, n.HTML)
		}
		faults = append(faults, s.String())
	}
	return faults
}
