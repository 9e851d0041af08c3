package config

import (
	"net/url"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/deadletteroffice/dlo/docs/examples"
)

// Show returns the configuration in force as YAML, for the file at a path. It has the keys of the
// file with their variables filled in, the values of the environment that override them, and the
// default of each key that the file lacks. Passwords and tokens of URLs are hidden, and what the
// URL of a channel has behind its host. Load refuses a file in which they are hidden. The error is
// that of Load.
func Show(path string, getenv func(string) string) (string, error) {
	text, err := readFile(path) // once, because it may be a pipe
	if err != nil {
		return "", err
	}
	if _, err := Parse(path, text, getenv); err != nil {
		return "", err
	}
	shown := written((&decoder{}).document(examples.Configuration), true)
	if own := (&decoder{getenv: getenv}).document(text); own != nil {
		merge(shown, written(own, true))
	}
	for key, name := range map[string]string{"listen": "DLO_LISTEN", "store": "DLO_STORE"} {
		if v := getenv(name); v != "" {
			put(shown, []string{key}, node(v))
		}
	}
	for _, b := range find(shown, "brokers").Content {
		for key, name := range map[string]string{"url": amqpSetting, "management": "DLO_MANAGEMENT_URL"} {
			if v := getenv(name); v != "" && find(b, "name").Value == "main" {
				remove(b, map[string]string{"url": "amqp"}[key])
				put(b, []string{key}, node(v))
			}
		}
	}
	hideSecrets(shown, "")
	writeDollars(shown)
	return encode(shown) + "\n", nil
}

// inPlaceOf maps a key to the key that a mapping cannot have beside it.
var inPlaceOf = map[string]string{"amqp": "url", "first": "delays", "attempts": "delays", "settled": "quiet"}

// merge puts the values of a mapping into another mapping. The items of a list get the defaults of
// the first item of the list that they replace.
func merge(into, own *yaml.Node) {
	for i := 0; i+1 < len(own.Content); i += 2 {
		remove(into, inPlaceOf[own.Content[i].Value])
	}
	for i := 0; i+1 < len(own.Content); i += 2 {
		key, value := own.Content[i].Value, own.Content[i+1]
		was := find(into, key)
		switch {
		case was == nil || value.Kind != was.Kind && was.Kind != yaml.MappingNode:
		case was.Kind == yaml.MappingNode:
			merge(was, value)
			continue
		case len(was.Content) > 0 && was.Content[0].Kind == yaml.MappingNode:
			for k, item := range value.Content {
				value.Content[k] = written(was.Content[0], false)
				merge(value.Content[k], item)
			}
		}
		put(into, []string{key}, value)
	}
}

// remove removes a key from a mapping, if it is there.
func remove(n *yaml.Node, key string) {
	if i := position(n, key); i >= 0 {
		n.Content = append(n.Content[:i-1:i-1], n.Content[i+1:]...)
	}
}

// hidden stands in place of what is hidden.
const hidden = "••••"

// secretParameter finds the parameters of a URL whose names say that their values are secret. A
// value that begins with a placeholder of a link is none.
var secretParameter = regexp.MustCompile(
	`(?i)([?&#](?:[^=&#]*[-_.])?` +
		`(?:passw(?:or)?d|pass|pwd|[a-z]*secret|[a-z]*token|[a-z]*key|auth|sig|signature|credentials?)=)[^&#{][^&#]*`,
)

// hideSecrets replaces the secrets in a tree. All other secrets are in files of their own, except
// the default password of a broker, which is none.
func hideSecrets(n *yaml.Node, path string) {
	for i, child := range n.Content {
		below := path
		if n.Kind == yaml.MappingNode {
			below = path + "." + n.Content[i&^1].Value
		}
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			hideSecrets(child, below)
		}
	}
	shown := secretParameter.ReplaceAllString(n.Value, "${1}"+hidden)
	u, err := url.Parse(shown)
	if err == nil && u.Host != "" {
		n.Value = shown
		if password, set := u.User.Password(); set && password != "guest" {
			n.Value = strings.Replace(u.Redacted(), ":xxxxx@", ":"+hidden+"@", 1)
		}
		if strings.HasPrefix(path, ".channels.") && u.Path+u.RawQuery != "" {
			n.Value = u.Scheme + "://" + u.Host + "/" + hidden
		}
	}
}
