package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/rules"
)

// NextStart are the keys that apply from the next start. Of the brokers, these are only their
// names, hosts, ports and vhosts; while one of these differs, the whole list waits for the start.
var NextStart = []string{"listen", "ops_listen", "tls", "store", "brokers"}

// KeepUntilStart gives those settings that apply from the next start the values that they have now.
// It returns the keys whose new values therefore wait.
func (c *Config) KeepUntilStart(now *Config) (waiting []string) {
	place := func(b Broker) string { return b.Name + " " + b.Place() }
	same := func(a, b Broker) bool { return place(a) == place(b) }
	for _, key := range NextStart {
		kept := *c
		switch key {
		case "listen":
			kept.Listen, kept.Listens = now.Listen, now.Listens
		case "ops_listen":
			kept.OpsListen = now.OpsListen
		case "tls":
			kept.TLS = now.TLS
		case "store":
			kept.Store = now.Store
		case "brokers":
			if !slices.EqualFunc(c.Brokers, now.Brokers, same) {
				kept.Brokers = now.Brokers
			}
		}
		if !reflect.DeepEqual(kept, *c) {
			waiting = append(waiting, key)
		}
		*c = kept
	}
	return waiting
}

// SameWork reports whether two configurations differ only in settings that can be replaced while
// everything works on: the rules, who is notified, and what people may do.
func (c Config) SameWork(other Config) bool {
	for _, one := range []*Config{&c, &other} {
		one.Rules, one.Channels, one.Quiet, one.Digest = rules.Set{}, nil, QuietHours{}, Digest{}
		one.Problems, one.Grants, one.Outline = Problems{}, nil, nil
	}
	return reflect.DeepEqual(c, other)
}

// Below reports whether the path of a key, such as grants[0].role, is one of some keys or below it.
func Below(path string, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		rest, ok := strings.CutPrefix(path, key)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
