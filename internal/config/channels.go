package config

import (
	"errors"
	"io/fs"
	"net/mail"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Channel is a way to notify people. Exactly one of Slack, PagerDuty, Alertmanager, SMTP and
// Webhook is set.
type Channel struct {
	Name         string
	Slack        *Slack
	PagerDuty    *PagerDuty
	Alertmanager *Alertmanager
	SMTP         *SMTP
	Webhook      *Webhook
	Places       deadletter.Places // places about whose letters the channel is notified
	AllowPrivate bool              // the channel may send to private and loopback addresses, and by plain http
}

// Slack is a channel that uses an incoming webhook. The URL of the webhook is a secret.
type Slack struct{ URL string }

// PagerDuty is a channel that uses an integration key of the Events API v2. The field URL is for
// tests and proxies. If it is empty, the URL of PagerDuty is used.
type PagerDuty struct{ Key, URL string }

// Alertmanager is a channel that sends notices to an Alertmanager.
type Alertmanager struct{ URL string }

// SMTP is a channel that sends mails through a mail server.
type SMTP struct {
	Host     string
	Port     int
	User     string // "" = dlo does not sign in at the mail server
	Password string
	From     string
	To       []string
}

// Webhook is a channel that sends JSON to a receiver. Its requests are signed as in Standard
// Webhooks.
type Webhook struct{ URL, Secret string }

var channelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,49}$`)

// channels reads the channels, in the order of the file.
func (d *decoder) channels(n *yaml.Node, into *[]Channel) {
	known := keys{}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i]
			known[name.Value] = func(n *yaml.Node) {
				if !channelName.MatchString(name.Value) {
					d.mistake(
						name, "%q is not a channel name: use at most 50 letters, digits, dots, - and _", name.Value,
					)
				}
				*into = append(*into, d.channel(n, name.Value))
			}
		}
	}
	d.mapping(n, "channels", known)
}

func (d *decoder) channel(n *yaml.Node, name string) Channel {
	c := Channel{Name: name}
	before, kinds := len(d.mistakes), 0
	kind := func(read func(n *yaml.Node)) func(n *yaml.Node) {
		return func(n *yaml.Node) { kinds++; read(n) }
	}
	private := false
	// allow_private is read first, because it may be below the keys to which it applies
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		private = private || n.Content[i].Value == "allow_private" && n.Content[i+1].Value == "true"
	}
	d.mapping(n, "channels."+name, keys{
		"slack": kind(func(n *yaml.Node) {
			c.Slack = &Slack{}
			d.mapping(n, "slack", keys{"url_file": func(n *yaml.Node) { d.secretLink(n, &c.Slack.URL) }})
			d.requireKeys(n, "url_file")
		}),
		"pagerduty": kind(func(n *yaml.Node) {
			c.PagerDuty = &PagerDuty{}
			d.mapping(n, "pagerduty", keys{
				"key_file": func(n *yaml.Node) { d.filledSecret(n, &c.PagerDuty.Key) },
				"url":      func(n *yaml.Node) { d.receiver(n, &c, private, &c.PagerDuty.URL) },
			})
			d.requireKeys(n, "key_file")
		}),
		"alertmanager": kind(func(n *yaml.Node) {
			c.Alertmanager = &Alertmanager{}
			d.mapping(n, "alertmanager", keys{
				"url": func(n *yaml.Node) { d.receiver(n, &c, private, &c.Alertmanager.URL) },
			})
			d.requireKeys(n, "url")
		}),
		"smtp": kind(func(n *yaml.Node) { c.SMTP = d.smtp(n) }),
		"webhook": kind(func(n *yaml.Node) {
			c.Webhook = &Webhook{}
			d.mapping(n, "webhook", keys{
				"url":         func(n *yaml.Node) { d.receiver(n, &c, private, &c.Webhook.URL) },
				"secret_file": func(n *yaml.Node) { d.filledSecret(n, &c.Webhook.Secret) },
			})
			d.requireKeys(n, "url", "secret_file")
		}),
		"allow_private": func(n *yaml.Node) { d.boolean(n, &c.AllowPrivate) },
		"queues":        func(n *yaml.Node) { d.globs(n, &c.Places.Queues) },
		"vhosts":        func(n *yaml.Node) { d.globs(n, &c.Places.VHosts) },
		"brokers":       func(n *yaml.Node) { d.globs(n, &c.Places.Brokers) },
	})
	if kinds != 1 && len(d.mistakes) == before {
		d.mistake(n, "a channel is one of slack, pagerduty, alertmanager, smtp, webhook")
	}
	return c
}

func (d *decoder) smtp(n *yaml.Node) *SMTP {
	s := &SMTP{Port: 587}
	address := func(n *yaml.Node, v string) {
		if a, err := mail.ParseAddress(v); err != nil || a.Address == "" {
			d.mistake(n, "%q is not a mail address such as team@example.com", v)
		}
	}
	d.mapping(n, "smtp", keys{
		"host": func(n *yaml.Node) {
			if d.text(n, &s.Host); n.Kind == yaml.ScalarNode && (s.Host == "" || strings.ContainsAny(s.Host, ":/ @")) {
				d.mistake(n, "%q is not the name of a mail server; its port stands under port", s.Host)
			}
		},
		"port":          func(n *yaml.Node) { d.integer(n, &s.Port, 1, 65535) },
		"user":          func(n *yaml.Node) { d.text(n, &s.User) },
		"password_file": func(n *yaml.Node) { d.filledSecret(n, &s.Password) },
		"from": func(n *yaml.Node) {
			if d.text(n, &s.From); n.Kind == yaml.ScalarNode {
				address(n, s.From)
			}
		},
		"to": func(n *yaml.Node) {
			s.To = nil
			d.list(n, func(n *yaml.Node) {
				var v string
				if d.text(n, &v); n.Kind == yaml.ScalarNode {
					address(n, v)
				}
				s.To = append(s.To, v)
			})
			if n.Kind == yaml.SequenceNode && len(s.To) == 0 {
				d.mistake(n, "give at least one address")
			}
		},
	})
	d.requireKeys(n, "host", "from", "to")
	if n.Kind == yaml.MappingNode && d.hasKey(n, "user") != d.hasKey(n, "password_file") {
		d.mistake(n, "user and password_file go together")
	}
	return s
}

// requireKeys reports a mistake if some of the given keys are missing from a mapping. The mistake
// lists the missing keys.
func (d *decoder) requireKeys(n *yaml.Node, names ...string) {
	if n.Kind != yaml.MappingNode {
		if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
			d.mistake(n, "%s is wanted here", strings.Join(names, ", "))
		}
		return
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return d.hasKey(n, name) })
	if len(missing) > 0 {
		d.mistake(n, "%s is missing", strings.Join(missing, ", "))
	}
}

// receiver reads the URL of a receiver, which must begin with https. If private addresses are
// permitted, it may also begin with http.
func (d *decoder) receiver(n *yaml.Node, c *Channel, private bool, into *string) {
	v, ok := d.url(n, "a URL")
	if !ok {
		return
	}
	u, err := url.Parse(v)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		d.mistake(n, "give a URL such as https://example.com/dlo")
	case u.User != nil:
		d.mistake(n, "a user and a password do not belong in this file")
	case u.Scheme == "http" && !private:
		d.mistake(
			n, "use https here; plain http is allowed to private addresses only, with channels.%s.allow_private: true",
			c.Name,
		)
	default:
		*into = strings.TrimSuffix(v, "/")
	}
}

// filledSecret reads a secret from a file. It reports a mistake if the secret is empty.
func (d *decoder) filledSecret(n *yaml.Node, into *string) {
	before := len(d.mistakes)
	if d.secret(n, into); *into == "" && len(d.mistakes) == before {
		d.mistake(n, "the file %s is empty", n.Value)
	}
}

// secretLink reads a URL from a file, because the URL is a secret. The mistakes that it reports
// never contain the URL.
func (d *decoder) secretLink(n *yaml.Node, into *string) {
	before := len(d.mistakes)
	d.filledSecret(n, into)
	if u, err := url.Parse(*into); len(d.mistakes) == before &&
		(err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		d.mistake(n, "the file %s does not hold a URL", n.Value)
		*into = ""
	}
}

// secret reads a value from a file. A key whose name ends with _file gives the name of that file.
func (d *decoder) secret(n *yaml.Node, into *string) {
	path, ok := d.scalar(n, "the path of a file")
	if !ok {
		return
	}
	text, err := os.ReadFile(path)
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	if err != nil {
		d.mistake(n, "file %s: %v", path, err)
		return
	}
	*into = strings.TrimRight(string(text), "\r\n")
}

// mention is one use of the name of a channel in the file, with its position.
type mention struct {
	node *yaml.Node
	name string
}

// channelNames reads a list of names of channels. The names are checked later, after all channels
// have been read.
func (d *decoder) channelNames(n *yaml.Node, into *[]string) {
	*into = nil
	seen := map[string]bool{}
	d.list(n, func(n *yaml.Node) {
		v, ok := d.scalar(n, "the name of a channel")
		switch {
		case !ok:
		case seen[v]:
			d.mistake(n, "%s is listed twice", v)
		default:
			seen[v] = true
			*into = append(*into, v)
			d.mentions = append(d.mentions, mention{n, v})
		}
	})
}

// channelNames returns the names of the channels, in order. If there are no channels, it returns
// nil.
func channelNames(list []Channel) []string {
	var names []string
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names
}

// checkChannels reports the names in the file for which there is no channel.
func (d *decoder) checkChannels(names []string) {
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	there := strings.Join(names, ", ")
	for _, m := range d.mentions {
		switch {
		case known[m.name]:
		case len(names) == 0:
			d.mistake(m.node, "there is no channel %q: define it under channels", m.name)
		default:
			d.mistake(m.node, "there is no channel %q; there are %s", m.name, there)
		}
	}
}
