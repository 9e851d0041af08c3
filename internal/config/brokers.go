package config

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/topology"
	"go.yaml.in/yaml/v3"
)

// brokerNodes contains the positions of values in the entry of a broker. Some checks are made only
// after all brokers have been read, and they need these positions. If the entry does not contain a
// value, its node is nil.
type brokerNodes struct {
	entry, name, exchange, accepts, annotations *yaml.Node
	inboxes                                     []*yaml.Node
	origins                                     []originNodes
}

// originNodes describes one line of the key "origins". The line names an inbox and its origin
// queue. originNodes holds both names, and their positions in the file.
type originNodes struct {
	inbox, queue *yaml.Node
	Inbox, Queue string
}

func (d *decoder) brokers(n *yaml.Node, c *Config) {
	c.Brokers, d.entries = nil, nil
	d.list(n, func(n *yaml.Node) {
		b, at := defaultBroker(), brokerNodes{entry: n}
		var split, painted *yaml.Node
		d.mapping(n, "brokers", keys{
			"name":   func(n *yaml.Node) { at.name = n; d.text(n, &b.Name) },
			"label":  func(n *yaml.Node) { d.brokerLabel(n, &b.Label) },
			"colour": func(n *yaml.Node) { painted = n; d.oneOf(n, (*string)(&b.Colour), colours()...) },
			"url": func(n *yaml.Node) {
				d.secretURL(n, &b.URL, "amqp: {host, port, tls, vhost, user, password_file}", "amqp", "amqps")
			},
			"amqp":       func(n *yaml.Node) { split = n; d.amqp(n, &b) },
			"management": func(n *yaml.Node) { d.management(n, &b) },
			"exchange":   func(n *yaml.Node) { at.exchange = n; d.text(n, &b.Exchange) },
			"inboxes": func(n *yaml.Node) {
				d.texts(n, &b.Inboxes)
				d.eachItem(n, func(n *yaml.Node) { at.inboxes = append(at.inboxes, n) })
			},
			"origins":        func(n *yaml.Node) { d.origins(n, &b, &at) },
			"rates":          func(n *yaml.Node) { d.rates(n, &b.Rates) },
			"annotations":    func(n *yaml.Node) { at.annotations = n; d.text(n, &b.Annotations) },
			"accept_limited": func(n *yaml.Node) { at.accepts = n; d.texts(n, &b.AcceptLimited) },
			"intents":        func(n *yaml.Node) { d.intents(n, &b.Intents) },
			"read_only":      func(n *yaml.Node) { d.boolean(n, &b.ReadOnly) },
			"idle_after":     func(n *yaml.Node) { d.duration(n, &b.IdleAfter, time.Minute, 30*day) },
			"observe": func(n *yaml.Node) {
				if n.Kind != yaml.ScalarNode {
					d.texts(n, &b.Observe)
					return
				}
				var all bool
				d.boolean(n, &all)
				if b.Observe = nil; all {
					b.Observe = []string{"*"}
				}
			},
			"requeue_to": func(n *yaml.Node) {
				if n.Kind == yaml.ScalarNode && n.Value == "declared" {
					d.mistake(n, "requeue_to: declared: not in this version; name queues or globs")
					return
				}
				d.texts(n, &b.RequeueTo)
			},
		})
		if painted != nil && b.Label == "" {
			d.mistake(painted, "colour applies to the label, and broker %s has no label", b.Name)
		}
		key := "url"
		if split != nil {
			key = "amqp"
		}
		b.Setting = key + " of broker " + b.Name + " in " + d.from
		if split != nil && d.hasKey(n, "url") {
			d.mistake(split, "a broker has either url or amqp, not both")
		}
		if len(b.Inboxes) == 0 {
			d.mistake(n, "broker %s has no inbox to drain", b.Name)
		}
		c.Brokers, d.entries = append(c.Brokers, b), append(d.entries, at)
	})
	if len(c.Brokers) == 0 {
		d.mistake(n, "brokers is empty; leave it out for the defaults")
	}
}

const maxBrokerLabel = 30 // in characters; labels are in the titles of pages and are shown on phones

// brokerLabel reads the name that people use for a broker.
func (d *decoder) brokerLabel(n *yaml.Node, into *string) {
	v, ok := d.scalar(n, "a text such as production")
	switch {
	case !ok:
	case utf8.RuneCountInString(v) > maxBrokerLabel:
		d.mistake(n, "the label of a broker has at most %d characters", maxBrokerLabel)
	case deadletter.Visible(v) != v || strings.TrimSpace(v) != v:
		d.mistake(n, "the label of a broker has visible characters only, and no space around it")
	default:
		*into = v
	}
}

func colours() []string {
	names := make([]string, len(deadletter.Colours))
	for i, c := range deadletter.Colours {
		names[i] = string(c)
	}
	return names
}

// origins reads a mapping from each inbox to the queue in which its letters failed. The names of
// the inboxes are checked later, after all brokers have been read.
func (d *decoder) origins(n *yaml.Node, b *Broker, at *brokerNodes) {
	b.Origins = nil
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.mistake(n, "give inboxes with the queues that their letters come from, for example {orders_error: orders}")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		o := originNodes{inbox: n.Content[i], queue: resolve(n.Content[i+1])}
		if resolve(o.inbox).Kind != yaml.ScalarNode {
			d.mistake(o.inbox, "give the name of an inbox")
			continue
		}
		o.Inbox = resolve(o.inbox).Value
		if d.text(o.queue, &o.Queue); o.queue.Kind != yaml.ScalarNode || o.queue.Tag == "!!null" {
			continue
		}
		if _, twice := b.Origins[o.Inbox]; twice {
			d.mistake(o.inbox, "%s is listed twice", o.Inbox)
			continue
		}
		if b.Origins == nil {
			b.Origins = map[string]string{}
		}
		b.Origins[o.Inbox] = o.Queue
		at.origins = append(at.origins, o)
	}
}

// rates reads a mapping from globs for queues to retries per second, in the order of the file.
func (d *decoder) rates(n *yaml.Node, into *[]rules.Rate) {
	*into = nil
	d.byQueue(
		n, "give queues with their retries per second, for example {\"email-*\": 10}",
		func(queue string, value *yaml.Node) {
			rate := rules.Rate{Queue: queue}
			d.number(value, &rate.PerSecond, 0, 1e6)
			*into = append(*into, rate)
		},
	)
}

// intents reads a mapping from globs for queues to intents. An intent says which dead letters of a
// queue dlo should keep. There are three intents: keep none, keep those that a consumer rejected,
// or also keep those that expired or overflowed.
func (d *decoder) intents(n *yaml.Node, into *[]topology.IntentOf) {
	*into = nil
	d.byQueue(
		n, "give queues with one of failures, all, never, for example {\"metrics.*\": never}",
		func(queue string, value *yaml.Node) {
			intent := topology.IntentOf{Glob: queue}
			d.oneOf(value, (*string)(&intent.Intent), topology.Intents...)
			*into = append(*into, intent)
		},
	)
}

// byQueue reads a mapping whose keys are names of queues or globs. If the value is not such a
// mapping, it reports a mistake. The parameter "usage" is the text of that mistake.
func (d *decoder) byQueue(n *yaml.Node, usage string, each func(queue string, value *yaml.Node)) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.mistake(n, "%s", usage)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		switch {
		case key.Kind != yaml.ScalarNode || key.Value == "":
			d.mistake(n.Content[i], "give the name of a queue, or a glob")
			continue
		case seen[key.Value]:
			d.mistake(n.Content[i], "%s is listed twice", key.Value)
			continue
		}
		seen[key.Value] = true
		each(key.Value, resolve(n.Content[i+1]))
	}
}

// secured contains the TLS settings of a connection to a broker, as parameters of its URL.
type secured struct{ parameters url.Values }

// tlsParameters maps the keys about TLS to the parameters of a URL.
var tlsParameters = map[string]string{
	"ca_file": "cacertfile", "cert_file": "certfile", "key_file": "keyfile", "server_name": "server_name_indication",
}

// withTLSKeys adds the functions that read the keys about TLS to the given keys.
func (s *secured) withTLSKeys(d *decoder, into keys) keys {
	s.parameters = url.Values{}
	for key, parameter := range tlsParameters {
		into[key] = func(n *yaml.Node) {
			var v string
			d.text(n, &v)
			s.parameters.Set(parameter, v)
		}
	}
	return into
}

// check reports a client certificate that has no key, or a key that has no certificate.
func (s *secured) check(d *decoder, n *yaml.Node) {
	if s.parameters.Has("certfile") != s.parameters.Has("keyfile") {
		d.mistake(n, "a client certificate needs cert_file and key_file, both in PEM")
	}
}

// amqp reads the address of a broker as separate keys. In this form, the password can be in a
// separate file.
func (d *decoder) amqp(n *yaml.Node, b *Broker) {
	host, port, tls, vhost, user, password, external := "127.0.0.1", 0, false, "/", "guest", "", false
	var s secured
	b.PasswordFile = ""
	d.mapping(n, "brokers.amqp", s.withTLSKeys(d, keys{
		"host":          func(n *yaml.Node) { d.text(n, &host) },
		"port":          func(n *yaml.Node) { d.integer(n, &port, 1, 65535) },
		"tls":           func(n *yaml.Node) { d.boolean(n, &tls) },
		"vhost":         func(n *yaml.Node) { d.text(n, &vhost) },
		"user":          func(n *yaml.Node) { d.text(n, &user) },
		"password_file": func(n *yaml.Node) { d.secret(n, &password); b.PasswordFile = n.Value },
		"external":      func(n *yaml.Node) { d.boolean(n, &external) },
	}))
	s.check(d, n)
	if len(s.parameters) > 0 && !tls {
		d.mistake(n, "ca_file, cert_file, key_file and server_name need tls: true")
	}
	if external {
		if s.parameters.Set("auth_mechanism", "EXTERNAL"); !s.parameters.Has("certfile") {
			d.mistake(n, "external: true needs a client certificate: cert_file and key_file")
		}
	}
	u := url.URL{Scheme: "amqp", User: url.UserPassword(user, password)}
	if tls {
		u.Scheme = "amqps"
	}
	if port == 0 {
		port = map[bool]int{false: 5672, true: 5671}[tls]
	}
	u.Host = net.JoinHostPort(host, strconv.Itoa(port))
	if b.URL = u.String() + "/" + url.PathEscape(vhost); len(s.parameters) > 0 {
		b.URL += "?" + s.parameters.Encode()
	}
}

// noManagement is the value of management if dlo must not look for a management API.
const noManagement = "none"

func (b *Broker) setManagement(v string) {
	if b.NoManagement = v == noManagement; b.NoManagement {
		v = ""
	}
	b.Management = v
}

func (d *decoder) management(n *yaml.Node, b *Broker) {
	b.APIPassword, b.NoManagement = "", false
	if n.Kind == yaml.ScalarNode && n.Value == noManagement {
		b.setManagement(noManagement)
		return
	}
	if n.Kind == yaml.ScalarNode {
		d.secretURL(n, &b.Management, "{url, user, password_file}", "http", "https")
		return
	}
	var address, user, password string
	var s secured
	d.mapping(n, "brokers.management", s.withTLSKeys(d, keys{
		"url":           func(n *yaml.Node) { d.webURL(n, &address) },
		"user":          func(n *yaml.Node) { d.text(n, &user) },
		"password_file": func(n *yaml.Node) { d.secret(n, &password); b.APIPassword = n.Value },
	}))
	s.check(d, n)
	if !d.hasKey(n, "url") {
		d.mistake(
			n,
			"management needs a url, for example {url: \"http://127.0.0.1:15672\", user: dlo, password_file: /run/secrets/rabbitmq}",
		)
	}
	if u, err := url.Parse(address); err == nil {
		if len(s.parameters) > 0 && u.Scheme != "https" {
			d.mistake(n, "ca_file, cert_file, key_file and server_name need a url that begins with https")
		}
		u.User, u.RawQuery = url.UserPassword(user, password), s.parameters.Encode()
		b.Management = u.String()
	}
}

// Place returns a text that is the same for all entries that lead to the same broker and vhost,
// even if their URLs are written differently. Such entries see the same queues. The text contains
// no user and no password.
func (b *Broker) Place() string {
	u, err := url.Parse(b.URL)
	if err != nil {
		return b.Name // the wrong URL is reported elsewhere
	}
	host, port, vhost := strings.ToLower(u.Hostname()), u.Port(), strings.TrimPrefix(u.Path, "/")
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		host = "localhost"
	}
	if port == "" {
		port = map[string]string{"amqp": "5672", "amqps": "5671"}[u.Scheme]
	}
	if vhost == "" {
		vhost = "/"
	}
	return net.JoinHostPort(host, port) + " " + vhost
}

// checkBrokers compares the brokers in the configuration. Two entries may lead to the same broker
// and vhost with different users. They must not share an inbox, because each would prevent the
// other from reading it.
func (d *decoder) checkBrokers(brokers []Broker) {
	// drained: place and inbox -> position of the entry; bound: place and exchange -> name of the
	// broker
	named, drained, bound := map[string]bool{}, map[[2]string]int{}, map[[2]string]string{}
	for i := range brokers {
		b := &brokers[i]
		at := d.nodes(i)
		switch {
		case b.Name == "":
			d.mistake(at.name, "a broker needs a name")
		case named[b.Name]:
			d.mistake(cmp.Or(at.name, at.entry), "another broker is named %s already; names are unique", b.Name)
		}
		named[b.Name] = true
		for k, q := range b.Inboxes {
			n := at.entry
			if k < len(at.inboxes) {
				n = at.inboxes[k]
			}
			first, taken := drained[[2]string{b.Place(), q}]
			switch {
			case q == "":
				d.mistake(n, "an inbox needs a name")
			case len(q) > deadletter.MaxQueueName:
				d.mistake(n, "the name of a queue has at most %d bytes", deadletter.MaxQueueName)
			case q == deadletter.TrialQueue:
				d.mistake(n, "queue %s is reserved for trials: name another queue", q)
			case taken && first == i:
				d.mistake(n, "inbox %s is listed twice", q)
			case taken:
				d.mistake(
					n, "inbox %s of this broker and vhost is already drained by broker %s; only one entry may drain it",
					q, brokers[first].Name,
				)
			default:
				drained[[2]string{b.Place(), q}] = i
			}
		}
		if b.Exchange != "" && len(b.Inboxes) > 0 {
			place := [2]string{b.Place(), b.Exchange}
			if other, ok := bound[place]; ok {
				d.mistake(
					cmp.Or(at.exchange, at.entry),
					"broker %s, of the same broker and vhost, already binds its inbox to exchange %s, so each letter would arrive twice; set exchange: \"\" here, or name another exchange",
					other, b.Exchange,
				)
			}
			bound[place] = b.Name
		}
		for _, q := range b.AcceptLimited {
			if !slices.Contains(b.Inboxes, q) {
				d.mistake(at.accepts, "accept_limited names %q, which is not an inbox of broker %s", q, b.Name)
			}
		}
	}
	reports := map[[2]string]bool{} // place and annotation queue
	for i := range brokers {
		b := &brokers[i]
		at := d.nodes(i)
		n := cmp.Or(at.annotations, at.entry)
		reports[[2]string{b.Place(), b.Annotations}] = true
		_, inbox := drained[[2]string{b.Place(), b.Annotations}]
		switch {
		case b.Annotations == "":
		case len(b.Annotations) > deadletter.MaxQueueName:
			d.mistake(n, "the name of a queue has at most %d bytes", deadletter.MaxQueueName)
		case inbox:
			d.mistake(
				n,
				"%q is both an inbox and the queue for annotations: name another queue under annotations, or none with \"\"",
				b.Annotations,
			)
		case b.Annotations == deadletter.TrialQueue:
			d.mistake(n, "queue %s is reserved for trials: name another queue", b.Annotations)
		case strings.HasPrefix(b.Annotations, "amq."):
			d.mistake(n, "%q belongs to the broker", b.Annotations)
		}
	}
	for i := range brokers {
		b := &brokers[i]
		for _, o := range d.nodes(i).origins {
			if !slices.Contains(b.Inboxes, o.Inbox) {
				d.mistake(o.inbox, "origins names %q, which is not an inbox of broker %s", o.Inbox, b.Name)
			}
			_, inbox := drained[[2]string{b.Place(), o.Queue}]
			switch {
			case o.Queue == "":
				d.mistake(o.queue, "the queue that letters of %s come from needs a name", o.Inbox)
			case len(o.Queue) > deadletter.MaxQueueName:
				d.mistake(o.queue, "the name of a queue has at most %d bytes", deadletter.MaxQueueName)
			case inbox:
				d.mistake(o.queue, "%q is an inbox: letters sent back there would be taken in again at once", o.Queue)
			case deadletter.OwnQueue(o.Queue) || strings.HasPrefix(o.Queue, "amq.") ||
				reports[[2]string{b.Place(), o.Queue}]:
				d.mistake(o.queue, "%q belongs to dlo or to the broker: no letter is sent back there", o.Queue)
			}
		}
	}
}

// nodes returns the positions of the values in the entry of the i-th broker. If there is no file,
// or if the file contains no brokers, they are empty.
func (d *decoder) nodes(i int) brokerNodes {
	if i < len(d.entries) {
		return d.entries[i]
	}
	return brokerNodes{}
}
