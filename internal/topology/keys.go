package topology

import (
	"fmt"
	"slices"
	"strings"
)

// keySet is the set of routing keys that match each of some topic patterns. Each pattern is a list
// of words, in which "*" means one word and "#" means any number of words. The empty set of
// patterns matches every key.
type keySet [][]string

// These are limits of the search for keys, because definitions come from strangers. Beyond a limit,
// a key counts as possible.
const (
	maxChains = 20    // the maximum number of ways from exchange to exchange to one binding
	maxSteps  = 2_000 // the maximum number of bindings and words that are tried for one binding
)

// example returns a key of the set. It prefers a word that no pattern contains, because such a word
// stands for all others, and takes the empty key only if there is no other. The result "found" is
// false if the set is empty, and "known" is false if the search needs more steps than are left.
func (s keySet) example(left *int) (key string, found, known bool) {
	if len(s) == 1 { // any words do
		return strings.NewReplacer("*", "word", "#", "some.words").Replace(strings.Join(s[0], ".")), true, true
	}
	words := []string{"word"}
	for _, pattern := range s {
		for _, w := range pattern {
			if w != "*" && w != "#" && !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	type step struct {
		ends [][]bool // for each pattern, the positions in it that the key has reached
		key  []string
	}
	next := []step{{ends: make([][]bool, len(s))}}
	for i, pattern := range s {
		next[0].ends[i] = start(pattern)
	}
	seen := map[string]bool{}
	for ; len(next) > 0; next = next[1:] {
		at := next[0]
		if !slices.ContainsFunc(at.ends, func(ends []bool) bool { return !ends[len(ends)-1] }) {
			if found = true; len(at.key) > 0 {
				return strings.Join(at.key, "."), true, true
			}
		}
		for _, w := range words {
			if *left--; *left < 0 {
				return "", false, false
			}
			to := step{make([][]bool, len(s)), append(slices.Clone(at.key), w)}
			alive := true
			for i, pattern := range s {
				to.ends[i] = slices.Clone(at.ends[i])
				readWord(pattern, to.ends[i], w)
				alive = alive && slices.Contains(to.ends[i], true)
			}
			if id := fmt.Sprint(to.ends); alive && !seen[id] {
				seen[id] = true
				next = append(next, to)
			}
		}
	}
	return "", found, true
}

// wordsOf returns the words of a routing key or of a topic pattern. An empty key has none.
func wordsOf(key string) []string {
	if key == "" {
		return nil
	}
	return strings.Split(key, ".")
}

// start returns the positions in a pattern that the empty key reaches.
func start(pattern []string) []bool {
	ends := make([]bool, len(pattern)+1)
	ends[0] = true
	skipAny(pattern, ends)
	return ends
}

// readWord changes the positions in a pattern that a key has reached to those that it reaches with
// one more word. The word "*" stands for any word.
func readWord(pattern []string, ends []bool, word string) {
	for i := len(pattern); i >= 0; i-- {
		stays := ends[i] && i < len(pattern) && pattern[i] == "#"
		ends[i] = stays || i > 0 && ends[i-1] && pattern[i-1] != "#" &&
			(pattern[i-1] == "*" || word == "*" || pattern[i-1] == word)
	}
	skipAny(pattern, ends)
}

// skipAny adds the positions that are reached if a "#" matches no word.
func skipAny(pattern []string, ends []bool) {
	for i, p := range pattern {
		if p == "#" && ends[i] {
			ends[i+1] = true
		}
	}
}

// topicFits reports whether a topic pattern matches the words of a routing key.
func topicFits(pattern, words []string) bool {
	ends := start(pattern)
	for _, w := range words {
		if w == "*" {
			w = "**" // in a key, it is a word like any other
		}
		readWord(pattern, ends, w)
	}
	return ends[len(pattern)]
}

// overlap reports whether a key matches two topic patterns.
func overlap(a, b []string) bool {
	ends := start(a)
	for _, w := range b {
		if w != "#" {
			readWord(a, ends, w)
			continue
		}
		for i := 1; i < len(ends); i++ { // words that "#" stands for take the key to all later positions
			ends[i] = ends[i] || ends[i-1]
		}
	}
	return ends[len(a)]
}

// isPattern reports whether more than one key may match the words of a topic pattern.
func isPattern(words []string) bool {
	return slices.Contains(words, "*") || slices.Contains(words, "#")
}

// with returns the keys of the set that a binding lets through. The result "known" is false for a
// binding that looks at something else than the key.
func (s keySet) with(x *Exchange, b *Binding) (set keySet, known bool) {
	switch x.routing() {
	case "fanout":
		return s, true
	case "direct", "topic":
		return append(slices.Clone(s), b.words), true
	}
	return nil, false
}

// keysOf returns keys that come through a binding of a queue. If other exchanges are bound to the
// exchange, messages have the keys that come through these. If no key of theirs fits, the messages
// must come from clients that publish to the exchange itself. For many keys, keysOf returns an
// example. The result "known" is false if messages may also have keys that dlo does not know.
func (n *network) keysOf(b *Binding) (keys []publishedKey, known bool) {
	x, left := n.exchanges[b.Source], maxSteps
	if x == nil {
		return nil, false
	}
	known = true
	add := func(set keySet) {
		set, judged := set.with(x, b)
		key, found, inTime := set.example(&left)
		literal := slices.IndexFunc(set, func(words []string) bool { return !isPattern(words) })
		switch {
		case !judged || !inTime || len(set) == 0:
			known = false
		case found && x.routing() == "direct":
			keys = append(keys, publishedKey{key: b.Key, from: b})
		case found && literal >= 0:
			keys = append(keys, publishedKey{key: key, from: b})
		case found:
			keys = append(keys, publishedKey{key, b, true, set})
		}
	}
	sets := n.chains(x.Name, map[string]bool{}, &left)
	for _, set := range sets {
		add(set)
	}
	if sets == nil || len(keys) == 0 && known && !x.Internal {
		left = maxSteps
		add(nil)
	}
	return keys, known
}

// chains returns the sets of keys with which messages come to an exchange. If no exchange is bound
// to it, clients publish to it, with keys that dlo does not know. The result is nil if it is not
// known, or if the search needs more steps than are left.
func (n *network) chains(exchange string, seen map[string]bool, left *int) []keySet {
	all := []keySet{nil}
	if len(n.into[exchange]) == 0 || seen[exchange] {
		return all
	}
	seen[exchange] = true
	defer delete(seen, exchange)
	var list []keySet
	for _, b := range n.into[exchange] {
		if *left--; *left < 0 {
			return nil
		}
		from := n.exchanges[b.Source]
		if from == nil || seen[b.Source] {
			continue
		}
		sets := n.chains(b.Source, seen, left)
		for _, set := range sets {
			set, known := set.with(from, b)
			if list = append(list, set); !known {
				return nil
			}
		}
		if sets == nil || len(list) > maxChains {
			return nil
		}
	}
	if len(list) == 0 {
		return all
	}
	return list
}

// mayReach returns the queues that messages with some keys of a set may reach through an exchange.
func (n *network) mayReach(exchange string, keys keySet, deaths []*death) []string {
	var r routed
	n.follow(exchange, "", func(x *Exchange, b *Binding) (may, known bool) {
		if kind := x.routing(); kind == "direct" || kind == "topic" {
			may = !slices.ContainsFunc(keys, func(words []string) bool { return !overlap(words, b.words) })
			return may, !may
		}
		may = slices.ContainsFunc(deaths, func(d *death) bool {
			matches, known := x.matches(b, "", d)
			return matches || !known
		})
		return may, !may
	}, &r, map[passed]bool{}, false)
	return append(r.queues, r.maybe...)
}
