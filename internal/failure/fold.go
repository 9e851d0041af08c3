package failure

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxFolded   = 1000     // bytes of what is left of an error
	maxUnfolded = 64 << 10 // of an error that is looked at
	maxTokens   = 4096
)

// Fold returns the text of an error without what varies from letter to letter, so that one cause
// has one text: numbers, ids, hashes, addresses, URLs, e-mail addresses, times, durations, sizes,
// JSON and quoted values become #, and white space is one space. Words stay, in their case, and so
// do names in quotes that are part of the cause: see fold_quotes.go. The result has at most 1,000
// bytes, Fold of it is itself, and the work is linear in the text.
//
// Two texts that differ in words do not fall together. Two that differ in numbers only always do,
// except where a number is what hides in a word of the letters a to f: see foldWord.
func Fold(text string) string {
	f := folder{src: text[:min(len(text), maxUnfolded)]}
	if !utf8.ValidString(f.src) {
		f.src = strings.ToValidUTF8(f.src, "?")
	}
	f.src = unquoted(f.src)
	for f.at < len(f.src) && len(f.out) < maxTokens {
		f.step()
	}
	return f.text()
}

// folder walks over a text and collects what is left of it.
type folder struct {
	src  string
	at   int
	out  []token
	glue bool              // something in quotes has just been put down: what follows without a space gets one
	none [len(quotes)]bool // quotes that are not closed any more
}

// token is a piece of what is left.
type token struct {
	kind kind
	text string
}

type kind byte

const (
	space kind = iota
	word
	varies // #
	mark   // punctuation
)

// step takes the next piece.
func (f *folder) step() {
	r, size := utf8.DecodeRuneInString(f.src[f.at:])
	switch {
	case unicode.IsSpace(r) || unicode.IsControl(r):
		f.at += size
		f.put(space, " ")
	case f.quote(r, size):
	case (r == '{' || r == '[') && f.blob():
	case separates(r):
		f.at += size
		f.put(mark, f.src[f.at-size:f.at])
	default:
		f.chunk()
	}
}

// separates says whether a character stands between words. The others join into what foldChunk
// looks at as one: addresses, paths, names with dots.
func separates(r rune) bool { return strings.ContainsRune(`(){}[]<>,;|=!?`, r) || isQuote(r) }

// chunk takes what stands up to the next space, separator or quote.
func (f *folder) chunk() {
	from := f.at
	for f.at < len(f.src) {
		r, size := utf8.DecodeRuneInString(f.src[f.at:])
		if (r == '\'' || r == '’') && f.at > from && endsWord(f.src[:f.at]) && beginsWord(f.src[f.at+size:]) { // can't
			f.at += size
			continue
		}
		if unicode.IsSpace(r) || unicode.IsControl(r) || separates(r) {
			break
		}
		if r == ':' && strings.HasPrefix(f.src[f.at:], "://") {
			f.url(from)
			return
		}
		f.at += size
	}
	f.putChunk(f.src[from:f.at])
}

// url takes the rest of a URL whose scheme ends here, and puts down what stood before the scheme.
func (f *folder) url(from int) {
	scheme := f.at
	for scheme > from && letter(f.src[scheme-1]) {
		scheme--
	}
	f.putChunk(strings.TrimRight(f.src[from:scheme], "'’"))
	for f.at < len(f.src) {
		r, size := utf8.DecodeRuneInString(f.src[f.at:])
		if unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("()<>{}[]|,", r) || isQuote(r) {
			break
		}
		f.at += size
	}
	f.spaced()
	f.put(varies, "#")
}

// putChunk puts a chunk down, folded; dots and colons at its end are punctuation.
func (f *folder) putChunk(chunk string) {
	core := strings.TrimRight(chunk, ".:")
	if core != "" {
		if f.glue {
			f.spaced()
		}
		if folded := foldChunk(core); folded == "#" {
			f.put(varies, "#")
		} else {
			f.put(word, folded)
		}
	}
	for _, c := range chunk[len(core):] {
		f.put(mark, string(c))
	}
}

// spaced puts a space before what would else grow together with the word before it.
func (f *folder) spaced() {
	if n := len(f.out); n > 0 && f.out[n-1].kind != space {
		if last := f.out[n-1].text; f.out[n-1].kind != mark || last == "." || last == ":" {
			f.put(space, " ")
		}
	}
}

// put adds a piece. Where several pieces are one value, such as a date and a time, or a number and
// its unit, they are one.
func (f *folder) put(k kind, text string) {
	n := len(f.out)
	f.glue = false
	switch k {
	case space:
		if n == 0 || f.out[n-1].kind == space {
			return
		}
	case varies:
		before := f.before()
		for before >= 0 && f.out[before].kind == word && calendar[f.out[before].text] { // Fri, 20 Nov 2026
			f.out = f.out[:before]
			before = f.before()
		}
		if before >= 0 && f.out[before].kind == varies {
			f.out = f.out[:before+1]
			return
		}
	case word:
		if i := n - 1; i >= 0 && f.out[i].kind == space && i > 0 && f.out[i-1].kind == varies && units[text] {
			f.out = f.out[:i]
			return
		}
		if before := f.before(); before >= 0 && f.out[before].kind == varies && calendar[text] {
			f.out = f.out[:before+1]
			return
		}
	}
	f.out = append(f.out, token{k, text})
}

// before is the place of the last piece that is neither a space nor a comma, -1 when there is none;
// more than three of these keep pieces apart.
func (f *folder) before() int {
	for i := len(f.out) - 1; i >= max(0, len(f.out)-4); i-- {
		if t := f.out[i]; t.kind != space && t.text != "," {
			return i
		}
	}
	return -1
}

// text joins the pieces, up to the limit.
func (f *folder) text() string {
	var b strings.Builder
	for _, t := range f.out {
		if b.Len()+len(t.text) > maxFolded {
			break
		}
		b.WriteString(t.text)
	}
	return strings.TrimRight(b.String(), " ")
}

// calendar are the names in times, in the case in which they are written there.
var calendar = set("Jan Feb Mar Apr May Jun Jul Aug Sep Sept Oct Nov Dec January February March April June July August September October November December Mon Tue Wed Thu Fri Sat Sun Monday Tuesday Wednesday Thursday Friday Saturday Sunday")

// units follow a number that varies; the same amount is written with one or another.
var units = set("ns us µs μs ms s sec secs second seconds m min mins minute minutes h hr hrs hour hours d day days millis milliseconds millisecond microseconds nanoseconds b B kB KB MB GB TB KiB MiB GiB TiB byte bytes AM PM am pm UTC GMT CET CEST EST EDT PST PDT Z")

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
