package failure

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxFolded   = 1000     // maximum number of bytes of a folded error
	maxUnfolded = 64 << 10 // maximum number of bytes of an error that Fold examines
	maxTokens   = 4096
)

// Fold removes from an error text the parts that vary from letter to letter, so that all letters
// with one cause have the same text. Numbers, ids, hashes, addresses, URLs, e-mail addresses,
// times, durations, sizes, JSON and quoted values become "#". White space becomes one space. Words
// are kept unchanged. Quoted names that are part of the cause are kept too (fold_quotes.go). The
// result has at most 1,000 bytes. Folding the result again does not change it. The work is linear
// in the length of the text.
//
// Texts with different words stay different. Texts that differ only in numbers become equal, unless
// a number is part of a word whose letters are all from a to f (foldWord).
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

// folder folds one text: it replaces the parts that vary from letter to letter, such as numbers and
// ids (see Fold). It reads the text from the beginning to the end, and collects the resulting
// pieces.
type folder struct {
	src  string
	at   int
	out  []token
	glue bool              // the last piece was quoted, so a space separates it from the next one
	none [len(quotes)]bool // for each kind of quote: no closing quote is left in the text
}

// token is a piece of the folded text, for example a word or a punctuation mark.
type token struct {
	kind kind
	text string
}

type kind byte

const (
	space kind = iota
	word
	varies // text that varies, which becomes "#"
	mark   // punctuation
)

// step reads the next piece of the text.
func (f *folder) step() {
	r, size := utf8.DecodeRuneInString(f.src[f.at:])
	switch {
	case unicode.IsSpace(r) || unicode.IsControl(r):
		f.at += size
		f.addPiece(space, " ")
	case f.readQuote(r, size):
	case (r == '{' || r == '[') && f.readBlob():
	case isSeparator(r):
		f.at += size
		f.addPiece(mark, f.src[f.at-size:f.at])
	default:
		f.readChunk()
	}
}

// isSeparator reports whether a character ends a chunk. A chunk is a part of the text that is
// folded as a whole. It may be an address, a path or a name with dots.
func isSeparator(r rune) bool { return strings.ContainsRune(`(){}[]<>,;|=!?`, r) || isQuote(r) }

// readChunk reads the text up to the next space, separator or quote.
func (f *folder) readChunk() {
	from := f.at
	for f.at < len(f.src) {
		r, size := utf8.DecodeRuneInString(f.src[f.at:])
		// an apostrophe inside a word, as in "can't"
		if (r == '\'' || r == '’') && f.at > from && endsWord(f.src[:f.at]) && beginsWord(f.src[f.at+size:]) {
			f.at += size
			continue
		}
		if unicode.IsSpace(r) || unicode.IsControl(r) || isSeparator(r) {
			break
		}
		if r == ':' && strings.HasPrefix(f.src[f.at:], "://") {
			f.readURL(from)
			return
		}
		f.at += size
	}
	f.putChunk(f.src[from:f.at])
}

// readURL reads the rest of a URL whose scheme ends at the current position. Before that, it adds
// the text in front of the scheme. This text begins at the position "from".
func (f *folder) readURL(from int) {
	scheme := f.at
	for scheme > from && isLetter(f.src[scheme-1]) {
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
	f.addSpace()
	f.addPiece(varies, "#")
}

// putChunk folds a chunk and adds it. Dots and colons at the end of the chunk are punctuation.
func (f *folder) putChunk(chunk string) {
	core := strings.TrimRight(chunk, ".:")
	if core != "" {
		if f.glue {
			f.addSpace()
		}
		if folded := foldChunk(core); folded == "#" {
			f.addPiece(varies, "#")
		} else {
			f.addPiece(word, folded)
		}
	}
	for _, c := range chunk[len(core):] {
		f.addPiece(mark, string(c))
	}
}

// addSpace adds a space if the next piece would otherwise be joined to the previous word.
func (f *folder) addSpace() {
	if n := len(f.out); n > 0 && f.out[n-1].kind != space {
		if last := f.out[n-1].text; f.out[n-1].kind != mark || last == "." || last == ":" {
			f.addPiece(space, " ")
		}
	}
}

// addPiece adds a piece. It merges pieces that form one value, such as a date and a time, or a
// number and its unit.
func (f *folder) addPiece(k kind, text string) {
	n := len(f.out)
	f.glue = false
	switch k {
	case space:
		if n == 0 || f.out[n-1].kind == space {
			return
		}
	case varies:
		before := f.lastPiece()
		// for example "Fri, 20 Nov 2026"
		for before >= 0 && f.out[before].kind == word && calendar[f.out[before].text] {
			f.out = f.out[:before]
			before = f.lastPiece()
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
		if before := f.lastPiece(); before >= 0 && f.out[before].kind == varies && calendar[text] {
			f.out = f.out[:before+1]
			return
		}
	}
	f.out = append(f.out, token{k, text})
}

// lastPiece returns the index of the last piece that is neither a space nor a comma, or -1. It
// looks at the last four pieces only, because pieces further away are not merged.
func (f *folder) lastPiece() int {
	for i := len(f.out) - 1; i >= max(0, len(f.out)-4); i-- {
		if t := f.out[i]; t.kind != space && t.text != "," {
			return i
		}
	}
	return -1
}

// text joins the pieces, up to the maximum length.
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

// calendar contains the names of months and weekdays, in the spelling that is usual in times.
var calendar = wordSet(
	"Jan Feb Mar Apr May Jun Jul Aug Sep Sept Oct Nov Dec January February March April June July August September October November December Mon Tue Wed Thu Fri Sat Sun Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
)

// units contains words that may follow a number. They are removed together with the number, because
// the same amount can be written in different units.
var units = wordSet(
	"ns us µs μs ms s sec secs second seconds m min mins minute minutes h hr hrs hour hours d day days millis milliseconds millisecond microseconds nanoseconds b B kB KB MB GB TB KiB MiB GiB TiB byte bytes AM PM am pm UTC GMT CET CEST EST EDT PST PDT Z",
)

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
