package config

import (
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Link is a link from a letter to another tool. Its URL contains placeholders.
type Link struct {
	Name  string
	Parts []LinkPart // parts of the URL, in order
}

// LinkPart is a part of a link's URL. It is either literal text, or a placeholder that stands for a
// value of the letter.
type LinkPart struct {
	Text  string // literal text; "" for a placeholder
	Value string // name of the placeholder, e.g. trace_id or header.x-tenant
}

const (
	maxLinks    = 8
	maxLinkName = 40   // in bytes
	maxLinkURL  = 2000 // in bytes, including the placeholders
)

// LinkHeader is the beginning of a placeholder that stands for a header of the letter, as in
// {header.x-tenant}.
const LinkHeader = "header."

// LinkValues contains the names of all placeholders, except those for headers.
var LinkValues = []string{
	"trace_id", "b3_trace_id", "queue", "vhost", "broker", "group", "message_id", "correlation_id", "from", "to",
	"from_ms", "to_ms",
}

func (d *decoder) links(n *yaml.Node, into *[]Link) {
	d.list(n, func(n *yaml.Node) {
		var l Link
		var at *yaml.Node
		d.mapping(n, "links", keys{
			"name": func(n *yaml.Node) {
				if d.text(n, &l.Name); len(l.Name) > maxLinkName || deadletter.Visible(l.Name) != l.Name {
					d.mistake(n, "the name of a link has at most %d bytes, and only visible characters", maxLinkName)
				}
			},
			"url": func(n *yaml.Node) { at = n; l.Parts = d.linkURL(n) },
		})
		switch {
		case n.Kind != yaml.MappingNode:
			return
		case l.Name == "" || at == nil:
			d.mistake(
				n,
				"a link needs a name and a url, such as {name: Trace, url: \"https://tempo.example/trace/{trace_id}\"}",
			)
		case slices.ContainsFunc(*into, func(other Link) bool { return other.Name == l.Name }):
			d.mistake(n, "there are two links with the name %s", l.Name)
		case len(*into) == maxLinks:
			d.mistake(n, "there are more than %d links", maxLinks)
		}
		*into = append(*into, l)
	})
}

// linkURL reads the URL of a link. Placeholders are permitted only after the host, so that no
// letter can determine the host to which the link leads.
func (d *decoder) linkURL(n *yaml.Node) []LinkPart {
	text, ok := d.url(n, "a URL with placeholders")
	if !ok {
		return nil
	}
	if len(text) > maxLinkURL {
		d.mistake(n, "the url of a link has at most %d bytes", maxLinkURL)
		return nil
	}
	var parts []LinkPart
	sample := ""
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		if before != "" {
			parts = append(parts, LinkPart{Text: before})
			sample += before
		}
		if !found {
			break
		}
		if !hostBehind(sample) {
			d.mistake(
				n, "url: a placeholder may only come after the host, so that no letter can decide where the link leads",
			)
			return nil
		}
		name, behind, closed := strings.Cut(after, "}")
		if header, ok := strings.CutPrefix(
			name, LinkHeader,
		); !closed || !slices.Contains(LinkValues, name) && (!ok || header == "") {
			d.mistake(
				n,
				"url: there is no placeholder {%s}; there are {%s} and {%sNAME}, and a brace that belongs to the URL is written %%7B",
				deadletter.Visible(deadletter.Cut(name, 60)), strings.Join(LinkValues, "}, {"), LinkHeader,
			)
			return nil
		}
		parts = append(parts, LinkPart{Value: name})
		sample += "x"
		rest = behind
	}
	u, err := url.Parse(sample)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil ||
		!hostBehind(sample+"/") || strings.ContainsAny(
		sample, "}\\\"<> ",
	) || deadletter.Visible(sample) != sample {
		d.mistake(
			n,
			"url: an address such as https://tempo.example/trace/{trace_id} is wanted here, without user and password",
		)
		return nil
	}
	return parts
}

// hostBehind reports whether the beginning of a URL contains the whole host. This is so if a slash,
// a question mark or a hash sign follows the host.
func hostBehind(text string) bool {
	_, rest, ok := strings.Cut(text, "://")
	return ok && strings.IndexAny(rest, "/?#") > 0
}
