package config

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Outline returns the values in a configuration file by the paths of their keys, such as
// grants[0].role. The audit uses them to record changes. If a value may contain a secret or data of
// letters, Outline returns 16 bits of its hash instead. These bits show that the value has changed,
// but they are too few to find the value. Variables of the environment are filled in. If the file
// has mistakes, Outline returns what it could read, and an error.
func Outline(path string, getenv func(string) string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	outline := map[string]string{}
	d := &decoder{from: path, getenv: getenv}
	if root := d.document(string(text)); root != nil {
		addOutline("", root, outline, 0)
	}
	return outline, d.allMistakes(path)
}

// plainKeys contains the keys whose values the audit shows. The values of the keys below them are
// shown too.
var plainKeys = []string{
	"listen", "hosts", "base_path", "requests", "read_only", "ops_listen", "ops_open", "tls", "grants", "retention",
	"disk", "requeue", "ingest", "audit", "store",
	"auth.users", "auth.tokens", "auth.proxy.from", "auth.proxy.user", "auth.proxy.email", "auth.proxy.groups",
}

// plainOfBroker contains the keys of a broker whose values the audit shows.
var plainOfBroker = []string{
	"name", "label", "exchange", "inboxes", "requeue_to", "read_only", "observe", "idle_after", "accept_limited",
	"rates",
}

func auditShows(path string) bool {
	if rest, ok := strings.CutPrefix(path, "brokers["); ok {
		_, rest, _ = strings.Cut(rest, "].")
		return Below(rest, plainOfBroker)
	}
	return Below(path, plainKeys)
}

const (
	outlineDeep = 20
	outlineKeys = 5000
	outlineLong = 200 // maximum length of a value in bytes
)

func addOutline(path string, n *yaml.Node, into map[string]string, deep int) {
	if deep > outlineDeep || len(into) >= outlineKeys {
		return
	}
	switch n = resolve(n); n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			addOutline(strings.TrimPrefix(path+"."+n.Content[i].Value, "."), n.Content[i+1], into, deep+1)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			addOutline(path+"["+strconv.Itoa(i)+"]", item, into, deep+1)
		}
	case yaml.ScalarNode:
		if auditShows(path) && len(n.Value) <= outlineLong {
			into[path] = n.Value
			return
		}
		sum := sha256.Sum256([]byte(path + "\x00" + n.Value))
		into[path] = "#" + hex.EncodeToString(sum[:2])
	}
}
