package payload

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// openText prepares a text body for editing. After the edit, editText compares the text line by
// line, so that it finds the lines which were shown with escapes.
func (s *editing) openText() error {
	if s.text = wholeText(s.doc.Body); len(s.text) > maxJSON {
		return notEditable("it has " + deadletter.Bytes(len(s.doc.Body)) + ", above " + deadletter.Bytes(maxJSON))
	}
	return nil
}

// wholeText returns a text body as it is edited.
func wholeText(body []byte) string { return visible(unixLines(string(body)), "\n\t") }

func unixLines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// editText turns an edit of a text into the new body.
func (s *editing) editText(text string) (*Edited, error) {
	text, err := uniformLineEnds(text)
	if err != nil {
		return nil, err
	}
	e := &Edited{Masked: s.doc.Masked}
	inner := s.doc.Body
	if text != s.text {
		restored, err := restoreLines(unixLines(string(s.doc.Body)), s.text, text)
		if err != nil {
			return nil, err
		}
		crlf := bytes.Count(inner, []byte("\r\n"))
		if lf := bytes.Count(inner, []byte("\n")) - crlf; crlf > lf {
			restored = strings.ReplaceAll(restored, "\n", "\r\n")
			if lf > 0 {
				e.addWarning("loss: line ends of both kinds are in the stored text; the new one has CR LF only")
			}
		} else if crlf > 0 {
			e.addWarning("loss: line ends of both kinds are in the stored text; the new one has LF only")
		}
		inner = []byte(restored)
		if why := deadletter.NotText(inner); why != "" {
			return nil, &EditError{
				Message: "this is not text, because it has " + why + ": take that out, or replace the body as a whole",
			}
		}
		e.Changed = []string{"body"}
	}
	name, _ := (&Document{Layers: s.layers()}).Charset()
	e.addPassed("Text, " + cmp.Or(name, "UTF-8") + ", " + deadletter.Bytes(len(inner)))
	e.Text, e.Diff = s.read(inner).Text, Diff(s.text, wholeText(inner))
	_, err = s.finish(e, inner, text != s.text)
	return e, err
}

// escapePattern matches the escape sequences that the function "visible" writes.
var escapePattern = regexp.MustCompile(`\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[abfnrtv])`)

// restoreLines puts the stored lines back in place of lines that are shown differently. If several
// lines look alike, they are restored in their original order, as long as their number has not
// changed.
func restoreLines(stored, shown, text string) (string, error) {
	olds, seen, lines := strings.Split(stored, "\n"), strings.Split(shown, "\n"), strings.Split(text, "\n")
	behind := make(map[string][]string) // the stored lines, by the form in which they are shown
	for i, line := range seen {
		if line != olds[i] {
			behind[line] = nil
		}
	}
	for i, line := range seen {
		if _, ok := behind[line]; ok {
			behind[line] = append(behind[line], olds[i])
		}
	}
	times, masks := make(map[string]int), make(map[string]int)
	for _, line := range lines {
		times[line]++
	}
	for _, line := range seen {
		if strings.Contains(line, Masked) {
			masks[line]++
		}
	}
	gone := make(map[string]bool) // escapes in changed lines
	for line := range behind {
		if times[line] == 0 {
			for _, escape := range escapePattern.FindAllString(line, -1) {
				gone[escape] = true
			}
		}
	}
	used := make(map[string]int)
	for i, line := range lines {
		fail := func(message string) error { return &EditError{Line: i + 1, Column: 1, Message: message} }
		if list, ok := behind[line]; ok {
			k := used[line]
			if used[line]++; times[line] != len(list) {
				if slices.ContainsFunc(list, func(other string) bool { return other != list[0] }) {
					return "", fail(
						"several lines are shown like this one, and their number has changed, so it is not clear which it is: keep them all, or write it again",
					)
				}
				k = 0
			}
			lines[i] = list[k]
			continue
		}
		if strings.Contains(line, Masked) {
			if masks[line]--; masks[line] < 0 {
				return "", fail(writesMask)
			}
		}
		for _, escape := range escapePattern.FindAllString(line, -1) {
			if gone[escape] {
				return "", fail(
					"the stored line has a character that is shown as " + escape +
						" and would be lost: leave the line as it was, write it without, or replace the body as a whole",
				)
			}
		}
	}
	return strings.Join(lines, "\n"), nil
}
