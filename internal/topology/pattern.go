package topology

import (
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// compiled is the compiled pattern of a policy. It is stored in the policy when it is first used,
// so that it is compiled only once, even if the vhost has thousands of queues. Because matching
// changes the policy and the snapshot, only one goroutine at a time may use a snapshot.
type compiled struct {
	pattern string
	linear  *regexp.Regexp  // nil if Go cannot compile the pattern, for example because of a lookahead
	back    *regexp2.Regexp // knows lookaround, and may need very long; nil if it cannot compile the pattern
	slow    bool            // it has needed long for a name
	letters bool            // whether the pattern asks which characters are letters or spaces
}

const (
	// the time for all names and all patterns of a vhost together that need long for a name, because
	// patterns come from strangers
	patternTime = 2 * time.Second
	slowMatch   = 50 * time.Microsecond // what is faster costs nothing
	maxRead     = 10_000                // the maximum size in bytes of a pattern that dlo evaluates
)

// readDifferently finds what PCRE reads in another way than the packages regexp and regexp2, or
// what PCRE reads in another way in the two versions that RabbitMQ uses ({,3} up to 4.0 and in
// 4.3).
var readDifferently = regexp.MustCompile(`\{,|\\x[89a-fA-F{]|\\[0-3][0-7][0-7]|\\[pP]`)

// readByOneDifferently finds what only regexp2 reads in another way than PCRE: classes with names,
// the subtraction of classes, and references to groups if some of the groups have names.
var readByOneDifferently = regexp.MustCompile(`\[:|-\[|\(\?['<P][A-Za-z_].*\\[1-9k]|\\[1-9k].*\(\?['<P][A-Za-z_]`)

// lettersOf finds what depends on which bytes count as letters or spaces. Those outside of ASCII do
// on 3.10 and 4.0, and do not on 4.3, so dlo does not know it for names that have such bytes.
var lettersOf = regexp.MustCompile(`\\[wWbBsS]|\[:|\(\?[a-zA-Z-]*i`)

func compile(pattern string) *compiled {
	c := &compiled{pattern: pattern, letters: lettersOf.MatchString(pattern)}
	if len(pattern) > maxRead || readDifferently.MatchString(pattern) {
		return c
	}
	c.linear, _ = regexp.Compile(onlyASCII(pattern))
	if !readByOneDifferently.MatchString(pattern) {
		c.back, _ = regexp2.Compile(onlyASCII(pattern), regexp2.None)
	}
	return c
}

// timeToMatch returns the time that may still be used to evaluate patterns of a snapshot.
func (s *Snapshot) timeToMatch() *time.Duration {
	if s.matching == nil {
		s.matching = new(time.Duration)
		*s.matching = patternTime
	}
	return s.matching
}

// matchesName evaluates the pattern as RabbitMQ does, with PCRE: byte by byte, and not anchored.
// The result "known" is false for a pattern that dlo cannot evaluate, or not in the time that is
// left.
func (p *Policy) matchesName(name string, left *time.Duration) (matches, known bool) {
	if p.compiled == nil || p.compiled.pattern != p.Pattern {
		p.compiled = compile(p.Pattern)
	}
	c := p.compiled
	if c.letters && strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		return false, false
	}
	// the $ of PCRE and of regexp2 also matches before a line feed at the end, and the $ of Go does
	// not
	linear := c.linear != nil && !strings.HasSuffix(name, "\n")
	if !linear && c.back == nil || *left <= 0 && (c.slow || !linear) {
		return false, false
	}
	defer func(began time.Time) {
		if took := time.Since(began); took > slowMatch {
			c.slow = true
			*left -= took
		}
	}(time.Now())
	if linear {
		return c.linear.MatchString(onlyASCII(name)), true
	}
	c.back.MatchTimeout = *left
	matches, err := c.back.MatchString(onlyASCII(name))
	return matches, err == nil
}

// onlyASCII replaces each byte outside of ASCII by one character that is neither a letter nor a
// space. RabbitMQ matches bytes, and only those of ASCII count as letters, digits or spaces.
func onlyASCII(s string) string {
	const private = 0xE000 // the first character of a range without meaning
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
		if s[i] >= 0x80 {
			runes[i] += private
		}
	}
	return string(runes)
}
