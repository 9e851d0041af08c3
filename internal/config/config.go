// Package config reads the YAML file of dlo. It reports all mistakes in the file together, each
// with its line and column. It accepts a key only if this version has the feature to which the key
// belongs. A key that is reserved for a later version is rejected with an explanation.
package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/topology"
	"go.yaml.in/yaml/v3"
)

// Config is the complete configuration. Keys that are not in the file have their default values.
type Config struct {
	Listen    string   // address in the form host:port, or unix: and the path of a socket
	Listens   []string // more addresses in the same form
	PublicURL string
	Hosts     []string
	TLS       TLS
	OpsListen string // address for metrics and probes, which need no sign-in; "" = none
	OpsOpen   bool   // other machines may reach OpsListen
	Auth      Auth
	Grants    []identity.Grant
	BasePath  string  // path under which people reach dlo, e.g. /dlo; "" = the root
	Requests  float64 // maximum number of requests per second of one principal; 0 = no limit
	ReadOnly  bool    // people and programs may see everything, but may change nothing
	Log       Log
	AuditFile string // file to which each act is also written, as one line of JSON; "" = none
	Store     string
	Disk      Disk
	Brokers   []Broker
	Ingest    Ingest
	Requeue   Requeue
	Rules     rules.Set
	Schemas   Schemas
	Masking   Masking
	Links     []Link // links to other tools, in the order of the file
	Search    Search
	Channels  []Channel // channels in the order of the file
	Quiet     QuietHours
	Digest    Digest
	Problems  Problems
	Retention Retention
	Backup    Backup

	FailureHeaders deadletter.FailureHeaders // headers in which consumers report failures, besides the known ones
	Outline        map[string]string         // what the file says, as the function Outline returns it
}

// Log says what the log contains, and in which form.
type Log struct {
	Format   string // text or json
	Level    string // debug, info, warn or error
	Requests bool   // each HTTP request is logged
}

// Search contains the settings about searches for letters.
type Search struct {
	Text   bool     // letters can be found by the words in their bodies
	Fields []string // paths of body fields that queries can contain, as body.PATH
}

// Retention says how long letters in each state are kept before they are purged; 0 = forever.
type Retention struct{ Quiet, Discarded, Dead time.Duration }

// Backup says when backups of the store are made and rehearsed, and where.
type Backup struct {
	Folder   string // "" = no backups
	Every    time.Duration
	Keep     int           // number of backups that are kept
	Rehearse time.Duration // time between two rehearsals of the newest backup; 0 = none
}

// Disk says how much free space the disk of the store must have. If there is less free space, dlo
// accepts no letters.
type Disk struct {
	StopBelow        int64 // minimum free space in bytes
	StopBelowPercent int
	// size in bytes of a file that is deleted when the disk is full, so that transactions can still
	// be committed
	Reserve int64
}

// Broker is one broker and vhost in the configuration.
type Broker struct {
	Name         string
	URL          string // URL that contains the user and the password
	Label        string // name that people use for the broker, e.g. production; "" = none
	Colour       deadletter.Colour
	Setting      string // name of the setting that contains the URL, e.g. DLO_AMQP_URL
	PasswordFile string // file that contains the password in URL; "" = none
	Management   string // URL of the management API that contains the user and the password; "" = it is looked for
	NoManagement bool   // the management API is not looked for
	APIPassword  string // file that contains the password in Management; "" = none
	Exchange     string
	Inboxes      []string
	Origins      map[string]string // inbox -> queue in which its letters failed
	RequeueTo    []string
	// rates of the automatic retries; the first entry that matches a queue is used, otherwise
	// requeue.rate
	Rates         []rules.Rate
	AcceptLimited []string
	Intents       []topology.IntentOf // the first entry that matches a queue is used
	// if a queue has no consumer for longer than this, a check of the broker reports it
	IdleAfter   time.Duration
	ReadOnly    bool     // people and programs may see the letters of the broker, but may change nothing
	Observe     []string // globs for the queues whose letters are only observed; a single "*" = all queues
	Annotations string   // queue into which consumers write why they rejected messages; "" = none
}

// Ingest contains the settings about reading letters, including the size of a window.
type Ingest struct {
	Letters     int
	Bytes       int64
	Linger      time.Duration
	Uncertain   deadletter.Uncertain
	Horizon     time.Duration
	HorizonRows int
}

// Requeue contains the settings about sending letters back.
type Requeue struct {
	InFlight       int
	Rate           float64
	Watch          time.Duration
	InDoubt        string // republish or hold
	ConfirmTimeout time.Duration
	MaxBody        int64
	Nack           Nack
	Breaker        Breaker
}

// Nack is the back-off for letters that the broker rejects when dlo sends them to their queue. dlo
// notifies people after NoticeAfter rejections, or when the rejections have lasted for NoticeAge.
type Nack struct {
	First, Max  time.Duration
	NoticeAfter int
	NoticeAge   time.Duration
}

// Breaker contains the settings of the breakers. If too many letters of a group come back, a
// breaker stops the retries of that group in the queue. Later, it sends a few letters as a probe.
type Breaker struct {
	CameBack float64 // percentage of letters that come back, from 1 to 100; 0 = no breakers
	Of       int     // minimum number of letters of a group from which the percentage is computed
	Window   time.Duration
	Probe    int // number of retries that are sent as a probe
	// a letter dies if it is still held back this long after its last retry should have ended; 0 =
	// never
	GiveUp time.Duration
}

// Schemas contains the settings about the types of letters.
type Schemas struct {
	Directory  string
	Reflection []string // gRPC servers, each as host:port
	Bindings   []deadletter.Binding
	// names of headers that may hold the full name of a type, in any case; the first that does
	// counts
	TypeHeaders []string
}

// typeHeaders lists headers in which publishers write the type of a message. Watermill writes it
// into "name".
var typeHeaders = []string{
	"x-protobuf-message", "x-protobuf-type", "x-proto-type", "protobuf-message", "protobuf-type", "proto-type",
	"x-message-type", "message-type", "message_type", "messagetype", "x-event-type", "event-type", "event_type",
	"eventtype", "x-type", "type", "name", "cloudevents:type", "cloudevents_type", "ce-type", "ce_type",
}

// Defaults returns the configuration for an empty file.
func Defaults() Config {
	return Config{
		Listen:    "127.0.0.1:8672",
		Requests:  200,
		Auth:      Auth{SessionIdle: identity.SessionIdle, SessionLongest: identity.SessionLongest},
		PublicURL: "",
		Log:       Log{Format: "text", Level: "info"},
		Store:     "dlo.db",
		Backup:    Backup{Every: day, Keep: 7, Rehearse: day},
		Disk:      Disk{StopBelow: 256 << 20, StopBelowPercent: 5, Reserve: 16 << 20},
		Brokers:   []Broker{defaultBroker()},
		Ingest: Ingest{
			Letters:     500,
			Bytes:       16 << 20,
			Linger:      5 * time.Millisecond,
			Uncertain:   deadletter.UncertainHold,
			Horizon:     10 * time.Minute,
			HorizonRows: 50000,
		},
		Requeue: Requeue{
			InFlight:       128,
			Rate:           50,
			Watch:          10 * time.Minute,
			InDoubt:        "republish",
			ConfirmTimeout: 30 * time.Second,
			MaxBody:        16 << 20,
			Nack:           Nack{First: 5 * time.Second, Max: 5 * time.Minute, NoticeAfter: 20, NoticeAge: time.Hour},
			Breaker:        Breaker{CameBack: 90, Of: 500, Window: 10 * time.Minute, Probe: 3, GiveUp: day},
		},
		Rules: rules.Set{Default: rules.Rule{
			Name: rules.DefaultName, Severity: deadletter.SeverityDigest,
			Retry: &rules.Retry{
				Delays: []time.Duration{10 * time.Second, 100 * time.Second, 1000 * time.Second},
				Waiter: rules.WaiterStore,
			},
		}},
		Schemas: Schemas{Directory: "schemas", TypeHeaders: typeHeaders},
		Search:  Search{Text: true},
		Quiet:   QuietHours{From: 22 * 60, To: 7 * 60, Zone: "UTC"},
		Digest: Digest{
			At:   8*60 + 30,
			Zone: "UTC",
			Days: []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday},
		},
		Retention: Retention{Quiet: 30 * day, Discarded: 7 * day},
	}
}

// amqpSetting is the environment variable that contains the URL of the broker "main".
const amqpSetting = "DLO_AMQP_URL"

func defaultBroker() Broker {
	return Broker{
		Name:        "main",
		URL:         "amqp://guest:guest@127.0.0.1:5672/",
		Setting:     amqpSetting,
		Exchange:    "dlo.dlx",
		Inboxes:     []string{"dlo.letters"},
		RequeueTo:   []string{"*"},
		Annotations: "dlo.annotations",
		IdleAfter:   15 * time.Minute,
	}
}

// Error is the error for a configuration with mistakes. It contains all of them.
type Error struct {
	Path     string
	Mistakes []deadletter.Mistake
}

// allMistakes returns all mistakes so far as an *Error, in the order of the file. If there are
// none, it returns nil.
func (d *decoder) allMistakes(path string) error {
	if len(d.mistakes) == 0 {
		return nil
	}
	slices.SortStableFunc(d.mistakes, func(a, b deadletter.Mistake) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	return &Error{path, append(d.mistakes, d.bounds.omitted()...)}
}

func (e *Error) Error() string {
	lines := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		if m.Line == 0 {
			lines[i] = m.Text
			continue
		}
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", e.Path, m.Line, m.Column, m.Text)
	}
	return strings.Join(lines, "\n")
}

// Load reads the configuration file at a path. If the path is "", it returns the defaults. Four
// environment variables override the file: DLO_LISTEN, DLO_STORE, DLO_AMQP_URL and
// DLO_MANAGEMENT_URL. The error is an *Error that contains every mistake.
func Load(path string, getenv func(string) string) (Config, error) {
	text, err := readFile(path)
	if err != nil {
		return Defaults(), err
	}
	return Parse(path, text, getenv)
}

func readFile(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", &Error{path, []deadletter.Mistake{{Text: fmt.Sprintf("configuration file: %v", err)}}}
	}
	return string(text), nil
}

// Parse reads the text of the configuration file at a path, as Load does.
func Parse(path, text string, getenv func(string) string) (Config, error) {
	c := Defaults()
	sum := sha256.Sum256([]byte(text))
	c.Rules.File, c.Rules.Digest, c.Rules.Loaded = path, hex.EncodeToString(sum[:]), time.Now()
	d := &decoder{from: path, getenv: getenv}
	d.file(text, &c)
	if v := getenv("DLO_LISTEN"); v != "" {
		c.Listen, c.Listens = v, nil
	}
	if v := getenv("DLO_STORE"); v != "" {
		c.Store = v
	}
	main := slices.IndexFunc(c.Brokers, func(b Broker) bool { return b.Name == "main" })
	for _, env := range []struct {
		name    string
		schemes []string
		set     func(b *Broker, v string) (passwordFile *string)
	}{
		{amqpSetting, []string{"amqp", "amqps"}, func(b *Broker, v string) *string {
			b.URL, b.Setting = v, amqpSetting
			return &b.PasswordFile
		}},
		{"DLO_MANAGEMENT_URL", []string{"http", "https"}, func(b *Broker, v string) *string {
			b.setManagement(v)
			return &b.APIPassword
		}},
	} {
		v := getenv(env.name)
		if v == "" {
			continue
		}
		if main < 0 {
			d.mistake(nil, "%s is for the broker named main, and there is none", env.name)
			continue
		}
		passwordFile := env.set(&c.Brokers[main], v)
		u, err := brokerURL(v, env.schemes)
		if err != nil && (v != noManagement || env.name == amqpSetting) {
			d.mistake(nil, "%s: %s", env.name, err)
		} else if err == nil {
			if _, set := u.User.Password(); set {
				*passwordFile = "" // the URL of the environment wins with its password
			}
		}
	}
	d.check(&c)
	c.Rules.Channels, c.Rules.Fields = channelNames(c.Channels), c.Search.Fields
	return c, d.allMistakes(path)
}

// check reports values that are valid alone but do not fit together. For example, the first delay
// of a back-off must not be longer than its longest delay.
func (d *decoder) check(c *Config) {
	if c.Requeue.Nack.First > c.Requeue.Nack.Max {
		d.mistake(
			d.at["requeue.nack"], "requeue.nack.first %s is above its max %s", c.Requeue.Nack.First, c.Requeue.Nack.Max,
		)
	}
	d.checkSearch(c)
	d.checkAccess(c)
	d.checkBrokers(c.Brokers)
	d.checkMirrors(&c.Rules.Default)
	d.checkChannels(channelNames(c.Channels))
}

// decoder reads the nodes of the file and collects the mistakes.
type decoder struct {
	from     string // path of the configuration file
	mistakes []deadletter.Mistake
	content  string // text of the file
	at       map[string]*yaml.Node
	entries  []brokerNodes // positions of the values of each broker; empty if there is no file
	mirrors  []mirror
	mentions []mention             // names of channels in the file
	getenv   func(string) string   // reads the variables of ${NAME}; nil = they stay as they are written
	filled   map[*yaml.Node]string // values with variables, as they are written
	bounds   *bounds               // limits for a text from an untrusted source; nil = no limits
}

func (d *decoder) mistake(n *yaml.Node, format string, args ...any) {
	if d.bounds.isFull(len(d.mistakes)) {
		return
	}
	m := deadletter.Mistake{Text: d.bounds.cut(d.asWritten(n, fmt.Sprintf(format, args...)))}
	if n != nil {
		m.Line, m.Column = n.Line, n.Column
	}
	d.mistakes = append(d.mistakes, m)
}

var (
	yamlLine   = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)
	yamlAnchor = regexp.MustCompile(`^yaml: unknown anchor '(.*)' referenced$`)
)

// noYAML returns the mistake for a file that is not valid YAML, with the reason and the position.
// The mistake contains no text from the file. A password may begin with an asterisk, and YAML would
// then take it for an anchor and name it in the reason.
func (d *decoder) noYAML(err error) deadletter.Mistake {
	if parts := yamlLine.FindStringSubmatch(err.Error()); parts != nil {
		m := deadletter.Mistake{Column: 1, Text: parts[2]}
		fmt.Sscan(parts[1], &m.Line)
		return m
	}
	parts := yamlAnchor.FindStringSubmatch(err.Error())
	if parts == nil {
		return deadletter.Mistake{Text: err.Error()}
	}
	m := deadletter.Mistake{Text: "there is no such anchor; a text that begins with a star needs quotes"}
	for i, line := range strings.Split(d.content, "\n") {
		if at := strings.Index(line, "*"+parts[1]); at >= 0 {
			m.Line, m.Column = i+1, utf8.RuneCountInString(line[:at])+1
			break
		}
	}
	return m
}

// document returns the root node of a YAML text. If the text is empty or not valid, it returns nil.
func (d *decoder) document(text string) *yaml.Node {
	d.at, d.content = map[string]*yaml.Node{}, text
	var doc, more yaml.Node
	documents := yaml.NewDecoder(strings.NewReader(text))
	err := documents.Decode(&doc)
	if err == nil {
		if err = documents.Decode(&more); err == nil && len(more.Content) > 0 {
			d.mistake(more.Content[0], "give one document; this is a second one")
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		d.mistakes = append(d.mistakes, d.noYAML(err))
		return nil
	}
	if len(doc.Content) == 0 {
		return nil
	}
	if limit := d.bounds.written(text); subtractSize(doc.Content[0], limit) < 0 {
		d.mistake(
			doc.Content[0],
			"with its aliases written out, this text is too long; at most %d KiB are allowed: repeat less by aliases",
			limit>>10,
		)
		return nil
	}
	d.fill(doc.Content[0])
	return doc.Content[0]
}

func (d *decoder) file(text string, c *Config) {
	c.Outline = map[string]string{}
	if root := d.document(text); root != nil {
		d.mapping(root, "", d.settings(c))
		addOutline("", root, c.Outline, 0)
	}
}

// settings returns the functions that read the keys at the top level of the file.
func (d *decoder) settings(c *Config) keys {
	return keys{
		"listen":     func(n *yaml.Node) { d.listen(n, c) },
		"public_url": func(n *yaml.Node) { d.webURL(n, &c.PublicURL) },
		"hosts":      func(n *yaml.Node) { d.texts(n, &c.Hosts) },
		"tls":        func(n *yaml.Node) { d.tls(n, &c.TLS) },
		"ops_listen": func(n *yaml.Node) { d.text(n, &c.OpsListen) },
		"ops_open":   func(n *yaml.Node) { d.boolean(n, &c.OpsOpen) },
		"auth":       func(n *yaml.Node) { d.at["auth"] = n; d.auth(n, &c.Auth) },
		"grants":     func(n *yaml.Node) { d.grants(n, &c.Grants) },
		"log": func(n *yaml.Node) {
			d.mapping(n, "log", keys{
				"format":   func(n *yaml.Node) { d.oneOf(n, &c.Log.Format, "text", "json") },
				"level":    func(n *yaml.Node) { d.oneOf(n, &c.Log.Level, "debug", "info", "warn", "error") },
				"requests": func(n *yaml.Node) { d.boolean(n, &c.Log.Requests) },
			})
		},
		"audit": func(n *yaml.Node) {
			d.mapping(n, "audit", keys{"file": func(n *yaml.Node) { d.text(n, &c.AuditFile) }})
		},
		"base_path": func(n *yaml.Node) { d.basePath(n, &c.BasePath) },
		"requests":  func(n *yaml.Node) { d.number(n, &c.Requests, 0, 100_000) },
		"read_only": func(n *yaml.Node) { d.boolean(n, &c.ReadOnly) },
		"store": func(n *yaml.Node) {
			if d.text(n, &c.Store); strings.Contains(c.Store, "://") {
				d.mistake(n, "store: not in this version: only a path to an SQLite file")
			}
		},
		"disk": func(n *yaml.Node) {
			d.mapping(n, "disk", keys{
				"stop_below":         func(n *yaml.Node) { d.size(n, &c.Disk.StopBelow, 0) },
				"stop_below_percent": func(n *yaml.Node) { d.integer(n, &c.Disk.StopBelowPercent, 0, 100) },
				"reserve":            func(n *yaml.Node) { d.size(n, &c.Disk.Reserve, 0) },
			})
		},
		"brokers": func(n *yaml.Node) { d.brokers(n, c) },
		"ingest": func(n *yaml.Node) {
			d.mapping(n, "ingest", keys{
				"letters": func(n *yaml.Node) { d.integer(n, &c.Ingest.Letters, 1, 2000) },
				"bytes":   func(n *yaml.Node) { d.size(n, &c.Ingest.Bytes, 1) },
				"linger":  func(n *yaml.Node) { d.duration(n, &c.Ingest.Linger, 0, time.Minute) },
				"uncertain": func(n *yaml.Node) {
					d.oneOf(
						n, (*string)(&c.Ingest.Uncertain), string(deadletter.UncertainHold),
						string(deadletter.UncertainKeep), string(deadletter.UncertainMerge),
					)
				},
				"horizon":      func(n *yaml.Node) { d.duration(n, &c.Ingest.Horizon, time.Second, 24*time.Hour) },
				"horizon_rows": func(n *yaml.Node) { d.integer(n, &c.Ingest.HorizonRows, 1, 1_000_000) },
			})
		},
		"requeue": func(n *yaml.Node) { d.requeue(n, &c.Requeue) },
		"rules":   func(n *yaml.Node) { d.rules(n, c) },
		"default": func(n *yaml.Node) { d.defaultRule(n, &c.Rules.Default) },
		"schemas": func(n *yaml.Node) {
			d.mapping(n, "schemas", keys{
				"directory":    func(n *yaml.Node) { d.text(n, &c.Schemas.Directory) },
				"reflection":   func(n *yaml.Node) { d.servers(n, &c.Schemas.Reflection) },
				"type_headers": func(n *yaml.Node) { d.texts(n, &c.Schemas.TypeHeaders) },
				"bindings": func(n *yaml.Node) {
					d.list(n, func(n *yaml.Node) {
						b := deadletter.Binding{Key: "*"}
						d.mapping(n, "schemas.bindings", keys{
							"queue": func(n *yaml.Node) { d.text(n, &b.Queue) },
							"key":   func(n *yaml.Node) { d.text(n, &b.Key) },
							"type":  func(n *yaml.Node) { d.text(n, &b.Type) },
							"path":  func(n *yaml.Node) { b.Path = d.path(n, "find", true).String() },
						})
						if b.Queue == "" || b.Type == "" {
							d.mistake(
								n,
								"a binding needs a queue and a type, for example {queue: email-queue, type: acme.notify.v1.EmailRequested}",
							)
						}
						c.Schemas.Bindings = append(c.Schemas.Bindings, b)
					})
				},
			})
		},
		"masking":     func(n *yaml.Node) { d.masking(n, &c.Masking) },
		"links":       func(n *yaml.Node) { d.links(n, &c.Links) },
		"channels":    func(n *yaml.Node) { d.channels(n, &c.Channels) },
		"quiet_hours": func(n *yaml.Node) { d.quietHours(n, &c.Quiet) },
		"digest":      func(n *yaml.Node) { d.digest(n, &c.Digest) },
		"problems": func(n *yaml.Node) {
			d.mapping(n, "problems", keys{"notify": func(n *yaml.Node) { d.channelNames(n, &c.Problems.Notify) }})
		},
		"failure_headers": func(n *yaml.Node) {
			d.failureHeaders(n, &c.FailureHeaders)
		},
		"search": func(n *yaml.Node) {
			d.mapping(n, "search", keys{
				"text":   func(n *yaml.Node) { d.boolean(n, &c.Search.Text) },
				"fields": func(n *yaml.Node) { d.at["search.fields"] = n; d.texts(n, &c.Search.Fields) },
			})
		},
		"backup": func(n *yaml.Node) {
			d.mapping(n, "backup", keys{
				"folder":   func(n *yaml.Node) { d.text(n, &c.Backup.Folder) },
				"every":    func(n *yaml.Node) { d.duration(n, &c.Backup.Every, time.Minute, 365*day) },
				"keep":     func(n *yaml.Node) { d.integer(n, &c.Backup.Keep, 1, 10_000) },
				"rehearse": func(n *yaml.Node) { d.duration(n, &c.Backup.Rehearse, 0, 365*day) },
			})
		},
		"retention": func(n *yaml.Node) {
			if d.hasKey(n, "quiet") && d.hasKey(n, "settled") {
				d.mistake(n, "retention.settled is the former name of retention.quiet; remove settled")
			}
			quiet := func(n *yaml.Node) { d.duration(n, &c.Retention.Quiet, 0, 100*365*day) }
			d.mapping(n, "retention", keys{
				"quiet":     quiet,
				"settled":   quiet,
				"discarded": func(n *yaml.Node) { d.duration(n, &c.Retention.Discarded, 0, 100*365*day) },
				"dead":      func(n *yaml.Node) { d.duration(n, &c.Retention.Dead, 0, 100*365*day) },
			})
		},
	}
}

func (d *decoder) requeue(n *yaml.Node, r *Requeue) {
	d.at["requeue.nack"] = n
	d.mapping(n, "requeue", keys{
		"in_flight":       func(n *yaml.Node) { d.integer(n, &r.InFlight, 1, 10_000) },
		"rate":            func(n *yaml.Node) { d.number(n, &r.Rate, 0, 1e6) },
		"watch":           func(n *yaml.Node) { d.duration(n, &r.Watch, time.Second, 365*day) },
		"in_doubt":        func(n *yaml.Node) { d.oneOf(n, &r.InDoubt, "republish", "hold") },
		"confirm_timeout": func(n *yaml.Node) { d.duration(n, &r.ConfirmTimeout, time.Second, time.Hour) },
		"max_body":        func(n *yaml.Node) { d.size(n, &r.MaxBody, 1) },
		"nack": func(n *yaml.Node) {
			d.at["requeue.nack"] = n
			d.mapping(n, "requeue.nack", keys{
				"first":        func(n *yaml.Node) { d.duration(n, &r.Nack.First, time.Second, 365*day) },
				"max":          func(n *yaml.Node) { d.duration(n, &r.Nack.Max, time.Second, 365*day) },
				"notice_after": func(n *yaml.Node) { d.integer(n, &r.Nack.NoticeAfter, 1, 1_000_000) },
				"notice_age":   func(n *yaml.Node) { d.duration(n, &r.Nack.NoticeAge, time.Second, 365*day) },
			})
		},
		"breaker": func(n *yaml.Node) { d.breaker(n, &r.Breaker) },
	})
}

func (d *decoder) breaker(n *yaml.Node, b *Breaker) {
	d.mapping(n, "requeue.breaker", keys{
		"came_back": func(n *yaml.Node) {
			share := b.CameBack
			if d.number(n, &share, 0, 100); share > 0 && share < 1 {
				d.mistake(n, "came_back is per cent, from 1 to 100, or 0 for no breaker")
				return
			}
			b.CameBack = share
		},
		"of":      func(n *yaml.Node) { d.integer(n, &b.Of, 1, 10_000) },
		"window":  func(n *yaml.Node) { d.duration(n, &b.Window, time.Second, 7*day) },
		"probe":   func(n *yaml.Node) { d.integer(n, &b.Probe, 1, 10_000) },
		"give_up": func(n *yaml.Node) { d.duration(n, &b.GiveUp, 0, 365*day) },
	})
}
