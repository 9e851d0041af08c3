package config

import (
	"net/netip"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
)

// TLS contains the names of the files with the server's certificate chain and its key, both in PEM.
// Either both names are set, or none is.
type TLS struct{ Cert, Key string }

// Auth says how people and programs are identified. With the zero value, nobody is identified.
// Everybody who reaches the loopback address is then the person "local", who may do everything.
type Auth struct {
	Proxy  identity.Proxy
	Tokens bool // API tokens are accepted
	Users  bool // dlo has users of its own

	SessionIdle    time.Duration // a session ends if it was not used for this long
	SessionLongest time.Duration // a session ends this long after it began, even if it is in use
}

// On reports whether requests without credentials are rejected.
func (a Auth) On() bool { return a.Tokens || a.Users || a.Proxy.User != "" }

func (d *decoder) tls(n *yaml.Node, t *TLS) {
	d.mapping(n, "tls", keys{
		"cert_file": func(n *yaml.Node) { d.text(n, &t.Cert) },
		"key_file":  func(n *yaml.Node) { d.text(n, &t.Key) },
	})
	if t.Cert == "" || t.Key == "" {
		d.mistake(n, "tls needs cert_file and key_file, both in PEM")
	}
}

var basePath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

// basePath reads the path under which people reach dlo.
func (d *decoder) basePath(n *yaml.Node, into *string) {
	d.at["base_path"] = n
	var v string
	d.text(n, &v)
	v = strings.TrimSuffix(v, "/")
	if v != "" && (!basePath.MatchString(v) || strings.Contains(v, "/.")) {
		d.mistake(n, "%q is not a path such as /dlo", v)
		return
	}
	*into = v
}

// Unix is the prefix of a listen address that names a Unix socket.
const Unix = "unix:"

// listen reads one address, or a list of addresses.
func (d *decoder) listen(n *yaml.Node, c *Config) {
	if n.Kind != yaml.SequenceNode {
		d.text(n, &c.Listen)
		return
	}
	var all []string
	if d.texts(n, &all); len(all) == 0 {
		d.mistake(n, "listen needs at least one address, for example 127.0.0.1:8672 or unix:/run/dlo/dlo.sock")
		return
	}
	c.Listen, c.Listens = all[0], all[1:]
}

func (d *decoder) auth(n *yaml.Node, a *Auth) {
	d.mapping(n, "auth", keys{
		"proxy":  func(n *yaml.Node) { d.proxy(n, &a.Proxy) },
		"tokens": func(n *yaml.Node) { d.boolean(n, &a.Tokens) },
		"users":  func(n *yaml.Node) { d.boolean(n, &a.Users) },
		"session": func(n *yaml.Node) {
			d.mapping(n, "auth.session", keys{
				"idle":    func(n *yaml.Node) { d.duration(n, &a.SessionIdle, time.Minute, 30*day) },
				"longest": func(n *yaml.Node) { d.duration(n, &a.SessionLongest, time.Minute, 90*day) },
			})
		},
	})
}

func (d *decoder) proxy(n *yaml.Node, p *identity.Proxy) {
	p.User = "X-Forwarded-User"
	d.mapping(n, "auth.proxy", keys{
		"from":        func(n *yaml.Node) { d.prefixes(n, p) },
		"user":        func(n *yaml.Node) { d.optionalHeader(n, &p.User) },
		"email":       func(n *yaml.Node) { d.header(n, &p.Email) },
		"groups":      func(n *yaml.Node) { d.header(n, &p.Groups) },
		"secret_file": func(n *yaml.Node) { d.filledSecret(n, &p.Secret) },
	})
	if !p.Set() {
		d.mistake(n, "auth.proxy needs from, the addresses of the proxy, for example from: [10.0.0.0/8]")
	}
}

// prefixes reads the addresses and networks of a proxy. It also accepts the text "unix", which
// stands for the Unix sockets of the machine.
func (d *decoder) prefixes(n *yaml.Node, p *identity.Proxy) {
	p.From, p.Unix = nil, false
	d.list(n, func(n *yaml.Node) {
		var v string
		if d.text(n, &v); v == "unix" {
			p.Unix = true
			return
		}
		prefix, err := netip.ParsePrefix(v)
		if address, bad := netip.ParseAddr(v); err != nil && bad == nil {
			prefix, err = netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()), nil
		}
		if err != nil {
			d.mistake(n, "%q is not an address such as 10.1.2.3, nor a network such as 10.0.0.0/8, nor unix", v)
			return
		}
		p.From = append(p.From, prefix.Masked())
	})
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)

// header reads the name of a header that a proxy sets.
func (d *decoder) header(n *yaml.Node, into *string) {
	var v string
	d.text(n, &v)
	name := textproto.CanonicalMIMEHeaderKey(v)
	if !headerName.MatchString(v) || slices.Contains([]string{
		"Authorization", "Cookie", "Host", identity.SecretHeader,
	}, name) {
		d.mistake(n, "%q cannot be a header that names a person; an example is X-Forwarded-User", v)
		return
	}
	*into = name
}

// optionalHeader reads the name of a header. It accepts "" if the proxy does not set the header.
func (d *decoder) optionalHeader(n *yaml.Node, into *string) {
	if n.Kind == yaml.ScalarNode && n.Value == "" && n.Style != 0 {
		*into = ""
		return
	}
	d.header(n, into)
}

// grants reads the list of grants.
func (d *decoder) grants(n *yaml.Node, into *[]identity.Grant) {
	d.at["grants"] = n
	d.list(n, func(n *yaml.Node) {
		var g identity.Grant
		d.mapping(n, "grants", keys{
			"role":            func(n *yaml.Node) { d.role(n, &g.Role) },
			"to":              func(n *yaml.Node) { d.grantees(n, &g.To) },
			"reveal":          func(n *yaml.Node) { d.boolean(n, &g.Reveal) },
			"purge":           func(n *yaml.Node) { d.boolean(n, &g.Purge) },
			"without_step_up": func(n *yaml.Node) { d.boolean(n, &g.WithoutStepUp) },
			"queues":          func(n *yaml.Node) { d.globs(n, &g.Queues) },
			"vhosts":          func(n *yaml.Node) { d.globs(n, &g.VHosts) },
			"brokers":         func(n *yaml.Node) { d.globs(n, &g.Brokers) },
			"from_rabbitmq":   func(n *yaml.Node) { d.boolean(n, &g.FromRabbitMQ) },
		})
		if !d.hasKey(n, "role") || !d.hasKey(n, "to") {
			d.mistake(n, "a grant needs role and to, for example {role: operator, to: [\"group:payments\"]}")
		}
		if _, err := deadletter.NewGrant(g.Role.String(), g.Reveal, g.Purge, g.Places); err != nil && g.Role != 0 {
			d.mistake(n, "%s", strings.TrimPrefix(err.Error(), deadletter.ErrInvalid.Error()+": "))
		}
		if g.FromRabbitMQ && slices.ContainsFunc(
			g.To, func(to string) bool { return strings.HasPrefix(to, deadletter.TokenName) },
		) {
			d.mistake(n, "from_rabbitmq is for people, because a token has no permissions in RabbitMQ")
		}
		*into = append(*into, g)
	})
}

// globs reads the places in which a grant is valid. It rejects an empty list, because that would
// mean that the grant is valid everywhere.
func (d *decoder) globs(n *yaml.Node, into *[]string) {
	if d.texts(n, into); len(*into) == 0 {
		d.mistake(
			n,
			"an empty list holds nowhere; leave the key out if the grant holds everywhere, or name at least one, for example orders.*",
		)
	}
}

func (d *decoder) role(n *yaml.Node, into *deadletter.Role) {
	v, ok := d.scalar(n, "a role")
	if !ok {
		return
	}
	role, err := deadletter.ParseRole(v)
	if err != nil {
		d.mistake(n, "there is no role %q; the roles are %s", v, strings.Join(deadletter.RoleNames(), ", "))
	}
	*into = role
}

func (d *decoder) grantees(n *yaml.Node, into *[]string) {
	d.list(n, func(n *yaml.Node) {
		var v string
		d.text(n, &v)
		kind, name, _ := strings.Cut(v, ":")
		if v != identity.Everyone && (name == "" || !slices.Contains([]string{"user", "group", "token"}, kind)) {
			d.mistake(n, "%q is not user:NAME, group:NAME, token:NAME or %s", v, identity.Everyone)
		}
		*into = append(*into, v)
	})
}

// checkAccess reports settings about access that do not fit together. For example, grants have no
// effect unless dlo can identify people.
func (d *decoder) checkAccess(c *Config) {
	if u, err := url.Parse(
		c.PublicURL,
	); err == nil && c.PublicURL != "" && c.BasePath != "" && strings.TrimSuffix(u.Path, "/") != c.BasePath {
		d.mistake(
			d.at["base_path"], "public_url has to end with base_path, as in https://tools.example.com%s", c.BasePath,
		)
	}
	switch p := c.Auth.Proxy; {
	case p.Set() && p.User == "" && !c.Auth.Users && !c.Auth.Tokens:
		d.mistake(
			d.at["auth"], "auth.proxy names nobody, because user is empty; then auth needs users: true or tokens: true",
		)
	case p.Set() && p.User == "" && p.Email+p.Groups != "":
		d.mistake(d.at["auth"], "auth.proxy.email and groups need user, the header with the person's name")
	case p.Set() && c.Auth.Users && c.TLS.Cert == "" && !strings.HasPrefix(c.PublicURL, "https:"):
		d.mistake(
			d.at["auth"],
			"auth.users behind a proxy needs public_url with https, so that browsers send the cookie of a session only over TLS; for example public_url: https://dlo.example.com",
		)
	case len(c.Grants) > 0 && !c.Auth.On():
		d.mistake(
			d.at["grants"],
			"grants need auth.proxy, auth.users or auth.tokens; without them everybody on this machine may do everything",
		)
	case len(c.Grants) == 0 && c.Auth.Proxy.User != "":
		d.mistake(
			d.at["auth"],
			"auth.proxy needs grants; without one nobody may do anything, for example grants: [{role: reader, to: [everyone]}]",
		)
	}
}
