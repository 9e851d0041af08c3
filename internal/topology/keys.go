package topology

import (
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
	maxSteps  = 2_000 // the maximum number of words that are tried for one example
	maxTries  = 200   // the maximum number of bindings that are tried for one set of keys
)

// example returns a key of the set. It prefers a word that no pattern contains, because such a word
// stands for all others. The result "found" is false if the set is empty, and "known" is false if
// the search was too long.
func (s keySet) example() (key string, found, known bool) {
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
		next[0].ends[i] = make([]bool, len(pattern)+1)
		next[0].ends[i][0] = true
		skipAny(pattern, next[0].ends[i])
	}
	seen := map[string]bool{}
	for tried := 0; len(next) > 0; next = next[1:] {
		at := next[0]
		if !slices.ContainsFunc(at.ends, func(ends []bool) bool { return !ends[len(ends)-1] }) {
			return strings.Join(at.key, "."), true, true
		}
		for _, w := range words {
			if tried++; tried > maxSteps {
				return "", false, false
			}
			to := step{make([][]bool, len(s)), append(slices.Clone(at.key), w)}
			alive := true
			var id strings.Builder
			for i, pattern := range s {
				to.ends[i] = readWord(pattern, at.ends[i], w)
				alive = alive && slices.Contains(to.ends[i], true)
				for _, reached := range to.ends[i] {
					id.WriteByte(map[bool]byte{true: '1', false: '0'}[reached])
				}
			}
			if alive && !seen[id.String()] {
				seen[id.String()] = true
				next = append(next, to)
			}
		}
	}
	return "", false, true
}

// readWord returns the positions in a pattern that a key reaches with one more word.
func readWord(pattern []string, from []bool, word string) []bool {
	to := make([]bool, len(from))
	for i, p := range pattern {
		switch {
		case !from[i]:
		case p == "#":
			to[i] = true
		case p == "*" || p == word:
			to[i+1] = true
		}
	}
	skipAny(pattern, to)
	return to
}

// skipAny adds the positions that are reached if a "#" matches no word.
func skipAny(pattern []string, ends []bool) {
	for i, p := range pattern {
		if p == "#" && ends[i] {
			ends[i+1] = true
		}
	}
}

// with returns the keys of the set that a binding lets through. The result "known" is false for a
// binding that looks at something else than the key.
func (s keySet) with(x *Exchange, b *Binding) (set keySet, known bool) {
	switch x.routing() {
	case "fanout":
		return s, true
	case "direct", "topic":
		return append(slices.Clone(s), strings.Split(b.Key, ".")), true
	}
	return nil, false
}

// keysOf returns an example of the keys that come through a topic binding of a queue. If other
// exchanges are bound to the exchange, messages have the keys that come through these. If no key of
// theirs fits, the messages must come from clients that publish to the exchange itself.
func (n *network) keysOf(x *Exchange, b *Binding) []publishedKey {
	var keys []publishedKey
	for _, set := range n.chains(x.Name, map[string]bool{}) {
		set, _ = set.with(x, b)
		key, found, known := set.example()
		if !known {
			return nil
		}
		if found {
			keys = append(keys, publishedKey{key, b, true, set})
		}
	}
	if len(keys) == 0 && !x.Internal {
		set, _ := keySet(nil).with(x, b)
		key, _, _ := set.example()
		keys = append(keys, publishedKey{key, b, true, set})
	}
	return keys
}

// chains returns the sets of keys with which messages come to an exchange. If no exchange is bound
// to it, clients publish to it, with keys that dlo does not know.
func (n *network) chains(exchange string, seen map[string]bool) []keySet {
	all := []keySet{nil}
	if len(n.into[exchange]) == 0 || seen[exchange] {
		return all
	}
	seen[exchange] = true
	defer delete(seen, exchange)
	var list []keySet
	for _, b := range n.into[exchange] {
		from := n.exchanges[b.Source]
		if from == nil || seen[b.Source] {
			continue
		}
		for _, set := range n.chains(b.Source, seen) {
			set, known := set.with(from, b)
			if list = append(list, set); !known || len(list) > maxChains {
				return all
			}
		}
	}
	if len(list) == 0 {
		return all
	}
	return list
}

// reachable returns the queues that some keys of a set reach through an exchange. The result is
// also false if dlo knows that no key does.
func (n *network) reachable(exchange string, set keySet, d *death) (queues []string, possible bool) {
	tries := 0
	var follow func(exchange string, set keySet, seen map[string]bool)
	follow = func(exchange string, set keySet, seen map[string]bool) {
		x := n.exchanges[exchange]
		if x == nil || seen[exchange] {
			return
		}
		seen[exchange] = true
		defer delete(seen, exchange)
		for _, b := range n.from[exchange] {
			if tries++; tries > maxTries {
				possible = true
				return
			}
			part, known := set.with(x, b)
			if !known { // of headers, and of types that dlo does not know
				matches, judged := x.matches(b, "", d)
				if judged && !matches {
					continue
				}
				part = set
			}
			if _, found, known := part.example(); known && !found {
				continue
			}
			switch {
			case b.To == "exchange":
				follow(b.Destination, part, seen)
			case n.queues[b.Destination] != nil:
				possible = true
				if !slices.Contains(queues, b.Destination) {
					queues = append(queues, b.Destination)
				}
			}
		}
		if other, ok := n.alternate(x); ok {
			follow(other, set, seen)
		}
	}
	follow(exchange, set, map[string]bool{})
	return queues, possible
}
