package config

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"go.yaml.in/yaml/v3"
)

const day = 24 * time.Hour

// keys is a map from each key of a YAML mapping to the function that reads its value.
type keys map[string]func(n *yaml.Node)

// later contains keys that are reserved for features of later versions. It maps the path of a
// mapping to the keys in that mapping.
var later = map[string][]string{
	"auth":         {"oidc"},
	"search":       {"substring"},
	"default":      {"discard"},
	"default.dead": {"group"},
}

// earlier contains keys that earlier versions used and that have no effect now.
var earlier = map[string][]string{
	"requeue": {"lease"}, // a claim now belongs to a process and never expires
}

// instead contains keys that earlier versions used, and what to do in their place.
var instead = map[string]map[string]string{
	"brokers": {"was": "to rename a broker, stop dlo and run: dlo brokers rename OLD NEW"},
}

// mapping reads the keys of a mapping. It reports unknown keys, and keys that occur twice.
func (d *decoder) mapping(n *yaml.Node, path string, known keys) {
	n = resolve(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.mistake(n, "%s: give keys with values", cmp.Or(path, "the file"))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch read := known[key.Value]; {
		case seen[key.Value]:
			d.mistake(key, "%s is listed twice", key.Value)
		case read != nil:
			read(resolve(value))
		case slices.Contains(earlier[path], key.Value):
		case slices.Contains(later[path], key.Value):
			d.mistake(key, "%s: not in this version", key.Value)
		default:
			hint := cmp.Or(instead[path][key.Value], keysHint(known))
			d.mistake(key, "there is no key %q%s; %s", key.Value, inPath(path), hint)
		}
		seen[key.Value] = true
	}
}

func (d *decoder) hasKey(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func inPath(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

func keysHint(known keys) string {
	return "the keys are " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}

func (d *decoder) list(n *yaml.Node, item func(n *yaml.Node)) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.mistake(n, "give a list, for example [a, b]")
		return
	}
	for _, e := range n.Content {
		item(resolve(e))
	}
}

// eachItem calls fn for every item of a YAML list.
func (d *decoder) eachItem(n *yaml.Node, fn func(n *yaml.Node)) {
	if n.Kind == yaml.SequenceNode {
		for _, e := range n.Content {
			fn(resolve(e))
		}
	}
}

func (d *decoder) scalar(n *yaml.Node, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.mistake(n, "%s is wanted here", want)
		return "", false
	}
	return n.Value, true
}

func (d *decoder) text(n *yaml.Node, into *string) {
	if v, ok := d.scalar(n, "a text"); ok {
		*into = v
	}
}

func (d *decoder) texts(n *yaml.Node, into *[]string) {
	*into = nil
	d.list(n, func(n *yaml.Node) {
		var v string
		d.text(n, &v)
		*into = append(*into, v)
	})
}

// servers reads a list of addresses, each as host:port.
func (d *decoder) servers(n *yaml.Node, into *[]string) {
	*into = nil
	d.list(n, func(n *yaml.Node) {
		var v string
		d.text(n, &v)
		host, port, err := net.SplitHostPort(v)
		if number, bad := strconv.Atoi(port); err != nil || bad != nil || host == "" || number < 1 || number > 65535 {
			d.mistake(n, "%q is not a server such as orders.example.com:50051", v)
		}
		if slices.Contains(*into, v) {
			d.mistake(n, "%s is listed twice", v)
		}
		*into = append(*into, v)
	})
}

func (d *decoder) boolean(n *yaml.Node, into *bool) {
	if v, ok := d.scalar(n, "true or false"); ok {
		switch v {
		case "true", "false":
			*into = v == "true"
		default:
			d.mistake(n, "give true or false, not %q", v)
		}
	}
}

func (d *decoder) oneOf(n *yaml.Node, into *string, values ...string) {
	if v, ok := d.scalar(n, "one of "+strings.Join(values, ", ")); ok {
		if !slices.Contains(values, v) {
			d.mistake(n, "%q is not one of %s", v, strings.Join(values, ", "))
			return
		}
		*into = v
	}
}

func (d *decoder) integer(n *yaml.Node, into *int, low, high int) {
	if v, ok := d.scalar(n, "a whole number"); ok {
		i, err := strconv.Atoi(v)
		if err != nil || i < low || i > high {
			d.mistake(n, "give a whole number from %d to %d, not %q", low, high, v)
			return
		}
		*into = i
	}
}

func (d *decoder) number(n *yaml.Node, into *float64, low, high float64) {
	if v, ok := d.scalar(n, "a number"); ok {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || !(f >= low && f <= high) {
			d.mistake(n, "give a number from %g to %g, not %q", low, high, v)
			return
		}
		*into = f
	}
}

func (d *decoder) duration(n *yaml.Node, into *time.Duration, low, high time.Duration) {
	v, ok := d.scalar(n, "a duration such as 30s")
	if !ok {
		return
	}
	got, err := deadletter.ParseDuration(v)
	if err != nil {
		d.mistake(n, "%v", err)
		return
	}
	if got < low || got > high {
		d.mistake(n, "give a duration from %s to %s, not %s", low, high, v)
		return
	}
	*into = got
}

func (d *decoder) size(n *yaml.Node, into *int64, low int64) {
	v, ok := d.scalar(n, "a size such as 16MiB")
	if !ok {
		return
	}
	number, unit := v, int64(1)
	for suffix, u := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if s, ok := strings.CutSuffix(v, suffix); ok {
			number, unit = s, u
		}
	}
	got, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || got < 0 || got > (1<<50)/unit {
		d.mistake(n, "%q is not a size; it looks like 4096, 64KiB, 16MiB or 1GiB", v)
		return
	}
	if got *= unit; got < low {
		d.mistake(n, "give a size of at least %d", low)
		return
	}
	*into = got
}

// url reads a URL. It refuses one in which the function Show has hidden something.
func (d *decoder) url(n *yaml.Node, want string) (string, bool) {
	v, ok := d.scalar(n, want)
	if ok && strings.Contains(v, hidden) {
		d.mistake(n, "the password or token in this URL is hidden, as dlo config show prints it; put it back")
		return "", false
	}
	return v, ok
}

func (d *decoder) webURL(n *yaml.Node, into *string) {
	v, ok := d.url(n, "a URL")
	if !ok {
		return
	}
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		d.mistake(n, "give a URL such as http://127.0.0.1:8672, without user and password")
		return
	}
	*into = strings.TrimSuffix(v, "/")
}

// brokerURL parses the URL of a broker. Its error describes the expected form and contains no part
// of the URL. It rejects a URL with an @ in the path. In such a URL, the password contains a slash
// that is not escaped, so that a part of the password would be taken for the path.
func brokerURL(text string, schemes []string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) || strings.Contains(u.EscapedPath(), "@") {
		return nil, fmt.Errorf(
			"give a URL with the scheme %s; percent-encode ? # / and @ in its password and its vhost",
			strings.Join(schemes, " or "),
		)
	}
	return u, nil
}

// secretURL reads a URL that may contain a password. The only password that it accepts is the
// default password of a broker, because that is not a secret.
func (d *decoder) secretURL(n *yaml.Node, into *string, instead string, schemes ...string) {
	v, ok := d.url(n, "a URL")
	if !ok {
		return
	}
	u, err := brokerURL(v, schemes)
	if err != nil {
		d.mistake(n, "%s", err)
		return
	}
	if password, _ := u.User.Password(); password != "" && password != "guest" && d.filled[n] == "" {
		d.mistake(n, "a password does not belong in this file; use %s, or ${NAME} for a variable of the environment", instead)
		return
	}
	*into = v
}
