package failure

import "strings"

const (
	maxChunk   = 256 // maximum number of bytes of a folded chunk; a longer chunk is data
	maxSegment = 64
	joints     = `._:-/+@%&~*\^$` // characters that separate the segments of a chunk
	numbers    = "0123456789#"
)

// foldChunk folds a text that contains no spaces. If all of it varies from letter to letter, like
// an id, it returns "#". It folds the result again until nothing changes, because removing an id
// can leave a number. "#" counts as a digit, so that folding a folded text does not change it.
func foldChunk(c string) string {
	for range 8 {
		folded := foldOnce(c)
		if folded == c {
			break
		}
		c = folded
	}
	return c
}

func foldOnce(c string) string {
	switch {
	case isNumeric(c), isEmail(c), ipv6(c):
		return "#"
	}
	var b []byte
	put := func(folded string) {
		// 10-20 is one value, and so is 1.2.3
		if n := len(b); folded[0] == '#' && n >= 2 && b[n-2] == '#' && strings.IndexByte(joints, b[n-1]) >= 0 {
			b = b[:n-2]
		}
		b = append(b, folded...)
	}
	dated := strings.ContainsAny(c, numbers)
	for i := 0; i < len(c) && len(b) <= maxChunk; {
		if strings.IndexByte(joints, c[i]) >= 0 {
			b = append(b, c[i])
			i++
			continue
		}
		if beginsWithUUID(c[i:]) {
			put("#")
			i += 36
			continue
		}
		end := i
		for end < len(c) && strings.IndexByte(joints, c[end]) < 0 {
			end++
		}
		segment := c[i:end]
		if n := encodedLength(c[i:], segment); n > 0 {
			if len(b) == 1 && (b[0] == '/' || b[0] == '+') {
				b = b[:0]
			}
			put("#")
			i += n
			continue
		}
		switch {
		case i > 0 && c[i-1] == '@' && isHex(segment): // for example Order@1b2c
			put("#")
		case dated && calendar[segment]: // for example 20/Nov/2026
			put("#")
		default:
			put(foldWord(segment))
		}
		i = end
	}
	folded := string(b)
	switch {
	case len(folded) > maxChunk:
		return "#"
	case folded != "" && folded[0] == '#' && units[folded[1:]]: // for example 30s
		return "#"
	case strings.HasPrefix(folded, "P") && strings.ContainsRune(folded, '#') &&
		strings.Trim(folded, "PTDHMSYW#.") == "":
		// for example PT30S
		return "#"
	}
	return folded
}

// foldWord folds one word, or a text that looks like a word. A run of digits becomes "#". Some
// words become "#" as a whole, because nobody would use them as a name:
//
//   - hexadecimal of at least seven letters and digits: ids, hashes and addresses. "dead12345678"
//     is treated as a word followed by a number
//   - alternating letters and digits: a1b2c3, ULIDs
//   - a mixture of upper and lower case that no name would have: NffrFeUfNV2Hib
//   - more than 64 bytes without a separator
func foldWord(s string) string {
	c := s
	if strings.ContainsAny(s, numbers) {
		c = withoutNumbers(s)
	}
	switch {
	case c == "#":
	case strings.HasPrefix(c, "#x") && hexOnly(c[2:]): // for example 0x7ffe
		return "#"
	case isHex(s) && len(s) >= 7 && !(c[len(c)-1] == '#' && hexWords[strings.ToLower(c[:len(c)-1])]):
		return "#"
	case len(c) > maxSegment, isScrambled(c):
		return "#"
	}
	return c
}

// hexWords lists words that consist of the letters a to f. If a number follows such a word, the
// word is kept.
var hexWords = wordSet("fd ad add bad bed fed abc ace cab dad dead deed face fade feed beef cafe decade facade")

// isScrambled reports whether the kinds of characters in a word change more often than in any name.
// A change from an upper-case letter to a lower-case one does not count, because many words begin
// that way.
func isScrambled(c string) bool {
	turns, changes, upper, lower, number := 0, 0, false, false, false
	for i := 0; i < len(c); i++ {
		k := kindOf(c[i])
		upper, lower, number = upper || k == 'A', lower || k == 'a', number || k == '#'
		if i == 0 {
			continue
		}
		before := kindOf(c[i-1])
		if k == before {
			continue
		}
		if k == '#' || before == '#' {
			turns++
		}
		if changesKind(c[i-1], c[i]) {
			changes++
		}
	}
	switch {
	case turns >= 3:
		return true
	case number && upper && lower && len(c) >= 16:
		return changes*5 > len(c)
	case number && upper && lower && len(c) >= 12:
		return changes*4 > len(c)
	case number && upper && lower:
		return changes >= 3 && changes*3 > len(c)
	case upper && lower:
		return len(c) >= 16 && changes*5 > len(c)
	}
	return false
}

func kindOf(b byte) byte {
	switch {
	case isDigit(b):
		return '#'
	case b >= 'A' && b <= 'Z':
		return 'A'
	}
	return 'a'
}

// withoutNumbers replaces each run of digits in a word with #.
func withoutNumbers(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case !isDigit(s[i]):
			b.WriteByte(s[i])
		case i == 0 || !isDigit(s[i-1]):
			b.WriteByte('#')
		}
	}
	return b.String()
}

// isNumeric reports whether a chunk is a number, a time, a version, an IPv4 address with a port, or
// a range of any of these.
func isNumeric(c string) bool {
	if c[0] == '-' || c[0] == '+' {
		c = c[1:]
	}
	if c == "" || !isDigit(c[0]) || strings.IndexByte("-+.:/_", c[len(c)-1]) >= 0 {
		return false
	}
	return strings.Trim(c, numbers+"-+.:/_TZeE%") == ""
}

// isEmail reports whether a chunk is an e-mail address.
func isEmail(c string) bool {
	at := strings.IndexByte(c, '@')
	if at <= 0 || strings.LastIndexByte(c, '@') != at {
		return false
	}
	dot := strings.LastIndexByte(c, '.')
	if dot < at+2 || dot == len(c)-1 {
		return false
	}
	for i := 0; i < len(c); i++ {
		if !isLetter(c[i]) && !isDigit(c[i]) && strings.IndexByte("@.-_+%&~*$^/", c[i]) < 0 {
			return false
		}
	}
	return true
}

// ipv6 reports whether a chunk is an IPv6 address. It also accepts other numbers that are separated
// by colons.
func ipv6(c string) bool {
	colons, numbers := 0, 0
	for i := 0; i < len(c); i++ {
		switch {
		case c[i] == ':':
			colons++
		case isDigit(c[i]):
			numbers++
		case c[i] == '.' || c[i] == '%' || c[i] == '/':
		case !hexDigit(c[i]):
			return false
		}
	}
	return colons >= 2 && numbers > 0
}

// encodedLength returns the length of the encoded data at the beginning of a chunk, or 0. Encoded
// data is base64 in any alphabet, including the dots of a JWT. It has at least 16 bytes, in which
// the kinds of characters change more often than in any name. If the chunk begins with a word,
// encodedLength returns 0, and foldOnce continues after that word.
func encodedLength(c, first string) int {
	// a word such as ch_ or upload/, but not the Ab of Ab/cD+
	if isWord(first) && (len(first) >= 4 ||
		strings.ToLower(first) == first && len(first) < len(c) && strings.IndexByte("-_.", c[len(first)]) >= 0) {
		return 0
	}
	joined, of, changes, numbers, upper, lower := 1, 0, 0, 0, 0, 0
	end := 0
	// only the beginning decides; otherwise, a long chunk would be scanned again from each of its
	// segments
	for ; end < len(c) && end < maxChunk; end++ {
		b := c[end]
		if strings.IndexByte("+/-_.", b) >= 0 {
			joined++
			continue
		}
		if b == '#' || b >= 0x80 || !isLetter(b) && !isDigit(b) {
			break
		}
		of++
		switch kindOf(b) {
		case '#':
			numbers++
		case 'A':
			upper++
		default:
			lower++
		}
		if end > 0 && changesKind(c[end-1], b) {
			changes++
		}
	}
	if end < len(c) && c[end] == '#' || end < 16 || numbers == 0 || upper == 0 || lower == 0 || of/joined < 4 ||
		changes*5 <= of {
		return 0
	}
	for end >= maxChunk && end < len(c) &&
		(strings.IndexByte("+/-_.", c[end]) >= 0 || c[end] < 0x80 && (isLetter(c[end]) || isDigit(c[end]))) {
		end++
	}
	return end
}

// changesKind reports whether two adjacent letters or digits are of different kinds. A capital
// letter at the beginning of a word does not count.
func changesKind(before, b byte) bool {
	if !isLetter(before) && !isDigit(before) {
		return false
	}
	k, was := kindOf(b), kindOf(before)
	return k != was && (was != 'A' || k != 'a')
}

// isWord reports whether a part of a chunk is a word. This includes a word in upper case, and
// several words that are written together LikeThis.
func isWord(s string) bool {
	upper := 0
	for i := 0; i < len(s); i++ {
		switch k := kindOf(s[i]); {
		case !isLetter(s[i]):
			return false
		case k == 'A':
			upper++
		}
		if i > 0 && kindOf(s[i-1]) == 'A' && kindOf(s[i]) == 'A' && upper != i+1 {
			return false
		}
		if i > 1 && upper == i && kindOf(s[i]) == 'a' { // for example WRDbv
			return false
		}
		// for example vxuZw
		if i > 0 && changesKind(s[i-1], s[i]) && s[i:] != "Id" &&
			(i+2 >= len(s) || kindOf(s[i+1]) != 'a' || kindOf(s[i+2]) != 'a') {
			return false
		}
	}
	return len(s) > 1
}

// beginsWithUUID reports whether a text begins with a UUID.
func beginsWithUUID(s string) bool {
	if len(s) < 36 || len(s) > 36 && (isLetter(s[36]) || isDigit(s[36])) {
		return false
	}
	for i := range 36 {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if s[i] != '-' {
				return false
			}
		} else if !hexDigit(s[i]) {
			return false
		}
	}
	return true
}

// isHex reports whether a word has only digits and the letters a to f, and contains a digit
// or has at least eight characters.
func isHex(s string) bool {
	return hexOnly(s) && (len(s) >= 8 || strings.ContainsAny(s, numbers))
}

func hexOnly(s string) bool { return strings.Trim(s, numbers+"abcdefABCDEF") == "" }

func isDigit(b byte) bool  { return b >= '0' && b <= '9' || b == '#' }
func hexDigit(b byte) bool { return isDigit(b) || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' }
func isLetter(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}
