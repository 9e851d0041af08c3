package drill

import (
	"html"
	"regexp"
	"strings"
)

// page contains what Overview shows.
type page struct {
	verdict string   // the sentence at the top; "" before the first letter
	banners []string // the titles of the problems
	groups  []group
}

// group is a group of letters on Overview.
type group struct{ queue, title string }

var (
	verdictOf = regexp.MustCompile(`(?s)id="verdict".*?<p class="strong break">(.*?)</p>`)
	bannersOf = regexp.MustCompile(`(?s)<div class="banner[^>]*>.*?<b>(.*?)</b>`)
	groupsOf  = regexp.MustCompile(`(?s)<a class="rowlink clamp"[^>]*>(.*?)</a>.*?data-queue="(.*?)"`)
	tag       = regexp.MustCompile(`<[^>]*>`)
)

// readPage reads the HTML of Overview.
func readPage(text string) (p page) {
	if m := verdictOf.FindStringSubmatch(text); m != nil {
		p.verdict = visibleText(m[1])
	}
	for _, m := range bannersOf.FindAllStringSubmatch(text, -1) {
		p.banners = append(p.banners, visibleText(m[1]))
	}
	for _, m := range groupsOf.FindAllStringSubmatch(text, -1) {
		p.groups = append(p.groups, group{queue: visibleText(m[2]), title: visibleText(m[1])})
	}
	return p
}

func visibleText(markup string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(markup, ""))), " ")
}
