package payload

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	utf16 "golang.org/x/text/encoding/unicode"
)

// A text in another charset than UTF-8 is a layer: the body inside is the text in UTF-8. So masks,
// search, trees and diffs see only the converted text, and an edit is written back in the charset.
//
// A body that is text in UTF-8 is not converted, whatever the letter declares. A declaration that
// is wrong can therefore not turn a value that a mask hides into something else. Two charsets
// write their characters in ASCII, and are the exception: see escapedIn.

// charset is one in which a body may be written.
type charset struct {
	name    string
	enc     encoding.Encoding
	guessed bool
}

// guessed follows the name of a charset that is a guess.
const guessed = " (guessed)"

var (
	utf16LE = charset{name: "UTF-16LE", enc: utf16.UTF16(utf16.LittleEndian, utf16.IgnoreBOM)}
	utf16BE = charset{name: "UTF-16BE", enc: utf16.UTF16(utf16.BigEndian, utf16.IgnoreBOM)}
)

// charsetNamed returns a charset by its name, which may be that of IANA, of web browsers, of Java
// or of Python. The field enc is nil if the name is not known. It is also nil for UTF-8: many
// clients set the content encoding utf-8 for all that they send, so it declares nothing.
func charsetNamed(name string, body []byte) charset {
	name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")
	switch name {
	case "", "utf-8", "utf8":
		return charset{}
	case "utf-16", "utf16", "unicode", "ucs-2", "iso-10646-ucs-2": // without a byte order mark
		if zeros(body, 1) > zeros(body, 0) {
			return utf16LE
		}
		return utf16BE
	}
	spellings := []string{
		name, strings.Replace(name, "iso8859", "iso-8859", 1), strings.Replace(name, "latin-", "latin", 1),
	}
	if number, ok := strings.CutPrefix(name, "cp"); ok {
		spellings = append(spellings, "windows-"+number, "ibm"+number)
	}
	for _, spelling := range spellings {
		enc, _ := ianaindex.MIME.Encoding(spelling)
		if enc == nil {
			enc, _ = htmlindex.Get(spelling)
		}
		if enc != nil && enc != encoding.Replacement && enc != charmap.XUserDefined {
			known, _ := ianaindex.MIME.Name(enc)
			return charset{name: cmp.Or(known, spelling), enc: enc}
		}
	}
	return charset{}
}

// mark returns the byte order mark of a charset, or nil.
func (c *charset) mark() []byte {
	switch c.enc {
	case utf16LE.enc:
		return []byte("\xff\xfe")
	case utf16BE.enc:
		return []byte("\xfe\xff")
	}
	return nil
}

// keepsASCII reports whether a byte of ASCII always stands for itself. In ISO-2022-JP, an escape
// begins other characters.
func (c *charset) keepsASCII() bool {
	const sample = "\x1b 0Aa{}~"
	return string(c.decode([]byte(sample))) == sample
}

// escapedIn reports whether a body in ASCII may hold other characters of the charset.
func (c *charset) escapedIn(body []byte) bool {
	return c.enc == japanese.ISO2022JP && bytes.IndexByte(body, 0x1b) >= 0 ||
		c.enc == simplifiedchinese.HZGB2312 && bytes.Contains(body, []byte("~{"))
}

// zeros counts the bytes 0 at even or odd places of the beginning of a body.
func zeros(body []byte, odd int) (n int) {
	for i := odd; i < min(len(body), 1024); i += 2 {
		if body[i] == 0 {
			n++
		}
	}
	return n
}

// declaredCharset returns the charset that the content type names, or else the content encoding, in
// which Spring puts it. Its name is masked like the property that contains it.
func (r *reading) declaredCharset() (c charset) {
	property, value, name := "content-type", r.hints.ContentType, r.params["charset"]
	if c = charsetNamed(name, r.doc.Body); c.enc == nil {
		property, value = "content-encoding", r.hints.ContentEncoding
		for _, name = range encodings(value) {
			if c = charsetNamed(name, r.doc.Body); c.enc != nil {
				break
			}
		}
	}
	if c.enc != nil && r.Mask.maskedPart(property, value, name) != name {
		c.name = Masked
	}
	return c
}

// convert replaces a body that is text in another charset by the same text in UTF-8, and reports
// whether it did. It uses the byte order mark or the charset that the letter declares. If neither
// fits, it guesses.
func (r *reading) convert() bool {
	doc, told := r.doc, r.declaredCharset()
	isUTF8 := deadletter.IsText(doc.Body)
	if isUTF8 && told.enc == nil {
		return false
	}
	isJSON, _ := r.isJSON(doc.Body)
	if isUTF8 && (isJSON || !told.escapedIn(doc.Body)) || !isJSON && r.readsAsNamed(doc.Body, false) {
		return false
	}
	list := []charset{told}
	if !isUTF8 {
		list = append(list, r.guessCharset(told.enc != nil || isJSON))
	}
	for _, c := range []charset{utf16LE, utf16BE} {
		if c.guessed = !strings.HasPrefix(told.name, "UTF-16"); bytes.HasPrefix(doc.Body, c.mark()) {
			list = []charset{c}
		}
	}
	if !isJSON && (told.enc == nil && list[len(list)-1].enc == nil || r.declaresProtobuf() ||
		compression(doc.Body) != "" || plainlyMessage(doc.Body) || r.readsAsAny(doc.Body)) {
		return false
	}
	for _, c := range list {
		if c.enc == nil {
			continue
		}
		text, ok := r.textIn(c)
		if nowJSON, _ := looksLikeJSON(text, false); !ok || isJSON && !nowJSON {
			doc.step(false, c.name+": the bytes are no text in it, or no longer JSON")
			continue
		}
		r.hideText = r.unreadableText()
		if !c.keepsASCII() { // the masks no longer see the texts that are in the bytes
			r.maskBinary()
			r.outer.hidden = r.outer.hidden || doc.Masked
		}
		if c.guessed && !isJSON || !c.keepsASCII() {
			r.hideText = r.mayHideUnread()
		}
		if doc.TooLarge {
			return false
		}
		l := Layer{Name: c.name, encoding: c.enc}
		if mark := c.mark(); bytes.HasPrefix(doc.Body, mark) {
			l.Before = mark
		}
		if c.guessed {
			l.Name += guessed
		}
		if !r.layer(l, text, "") {
			return false
		}
		if guess := doc.CharsetGuess(); guess != "" {
			doc.note(guess)
		}
		return true
	}
	return false
}

// guessCharset returns a guess of the charset of a body that is not UTF-8. A text, which the letter
// declares or the body shows, is in windows-1252, which contains ISO-8859-1. If nothing says that
// the body is text, its bytes must leave hardly any doubt. The field enc is nil if there is no
// guess.
func (r *reading) guessCharset(isText bool) charset {
	body, windows := r.doc.Body, charset{name: "windows-1252", enc: charmap.Windows1252, guessed: true}
	if isText || r.declaresJSON() || strings.HasPrefix(r.media, "text/") || strings.HasSuffix(r.media, "xml") {
		return windows
	}
	if r.media != "" && r.media != "application/octet-stream" || len(body) < minGuessed {
		return charset{}
	}
	var c charset
	sample := body[:min(len(body), 1024)]
	for odd, wide := range []charset{utf16BE, utf16LE} {
		if bytes.IndexByte(sample, 0) >= 0 && zeros(sample, 1-odd) == 0 && 4*zeros(sample, odd) >= 3*(len(sample)/2) {
			c = wide
			c.guessed = true
		}
	}
	if c.enc == nil && isLatin(sample, &windows) {
		c = windows
	}
	content, rest, framed := nextDelimited(body)
	if c.enc == nil || wireShaped(body, 1000) || framed && len(rest) == 0 && wireShaped(content, 1000) ||
		int(body[1]) == len(body)-2 { // a text of MessagePack has its length there
		return charset{}
	}
	return c
}

// isLatin reports whether a text in windows-1252 leaves hardly any doubt.
func isLatin(sample []byte, windows *charset) bool {
	plain := 0
	for _, x := range sample {
		if x < ' ' && x != '\t' && x != '\r' && x != '\n' { // most messages have such a byte
			return false
		}
		if x == ' ' || '0' <= x && x <= '9' || 'A' <= x && x <= 'Z' || 'a' <= x && x <= 'z' {
			plain++
		}
	}
	return 10*plain >= 7*len(sample) && !noLatin.Match(windows.decode(sample))
}

const minGuessed = 16 // in bytes; a shorter body is text only if the letter says so

// noLatin finds what hardly any text in windows-1252 has: signs and control characters, three
// letters beyond ASCII in a row, or such a letter beside no other letter and no space.
var noLatin = regexp.MustCompile(strings.ReplaceAll(
	`[^\t\r\n -~L‘’“”„–—…«»°§€]|[L]{3}|(^|[^A-Za-z ])[L]+([^A-Za-z ]|$)`, "L", "À-ÖØ-öø-ÿŒœŠšŽžŸ",
))

// textIn returns the body as UTF-8, if it is a text in the given charset.
func (r *reading) textIn(c charset) ([]byte, bool) {
	body := bytes.TrimPrefix(r.doc.Body, c.mark())
	sample := body[:min(len(body), 1024)] // shows most bodies that are no text
	if c.guessed && c.mark() == nil && !isText(c.decode(sample)) || r.budget.TakeMemory(4*int64(len(body))) != nil {
		return nil, false
	}
	text := c.decode(body)
	return text, isText(text)
}

// decode returns a text in UTF-8. What the charset does not contain becomes U+FFFD.
func (c *charset) decode(body []byte) []byte {
	text, err := c.enc.NewDecoder().Bytes(body)
	if err != nil {
		return nil
	}
	return text
}

// isText reports whether a converted text consists of characters, without any control character.
func isText(text []byte) bool {
	return len(text) > 0 && deadletter.NotText(text) == "" && !bytes.ContainsFunc(text, func(x rune) bool {
		return x == utf8.RuneError || x >= utf8.RuneSelf && unicode.IsControl(x)
	})
}

// encodeText writes a text in the charset of the layer.
func (l *Layer) encodeText(text []byte) ([]byte, error) {
	out, err := l.encoding.NewEncoder().Bytes(text)
	if err == nil {
		return slices.Concat(l.Before, out), nil
	}
	for i, x := range string(text) {
		if _, err := l.encoding.NewEncoder().String(string(x)); err == nil {
			continue
		}
		line, column := position(string(text), i)
		return nil, &EditError{Line: line, Column: column, Message: fmt.Sprintf(
			"%s has no character %s (%U): take it out, or in JSON write it as an escape, or replace the body as a whole",
			strings.TrimSuffix(l.Name, guessed), visible(string(x), ""), x,
		)}
	}
	return nil, &EditError{Message: "the text cannot be written in " + l.Name + ": replace the body as a whole"}
}

// writes reports whether the layer writes a text as the given bytes.
func (l *Layer) writes(text, as []byte) bool {
	again, err := l.encodeText(text)
	return err == nil && bytes.Equal(again, as)
}

// Charset returns the charset from which the body was converted to UTF-8, and whether it is a
// guess. The name is "" if the body was not converted.
func (d *Document) Charset() (name string, guess bool) {
	for _, l := range d.Layers {
		if l.encoding != nil {
			name, guess = strings.CutSuffix(l.Name, guessed)
		}
	}
	return name, guess
}

// CharsetGuess says that the charset of the body is a guess. It returns "" if it is none.
func (d *Document) CharsetGuess() string {
	name, guess := d.Charset()
	if !guess {
		return ""
	}
	return "The body is not UTF-8, and is shown as " + name + ", which is a guess."
}
