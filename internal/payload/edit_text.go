package payload

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// openText prepares a text body for editing. After the edit, editText compares the text line by
// line, so that it finds the lines which were shown masked or escaped.
func (s *editing) openText() error {
	var ok bool
	if s.text, ok = wholeText(s.doc); !ok {
		return notEditable("it is masked in part and has more than " + deadletter.Bytes(maxText))
	}
	if len(s.text) > maxJSON {
		return notEditable("it has " + deadletter.Bytes(len(s.doc.Body)) + ", above " + deadletter.Bytes(maxJSON))
	}
	return nil
}

// wholeText returns the complete text of a document. It returns false if the text is masked and the
// document shows only a part of it, because only Decode knows what is masked in the rest.
func wholeText(doc *Document) (string, bool) {
	if !doc.Masked {
		return visible(unixLines(string(doc.Body)), "\n\t"), true
	}
	for _, note := range doc.Notes {
		if strings.Contains(note, " of the text are shown, ") {
			return "", false
		}
	}
	return doc.Text, true
}

func unixLines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// editText turns an edit of a text into the new body.
func (s *editing) editText(text string) (*Edited, error) {
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
	e.addPassed("Text, UTF-8, " + deadletter.Bytes(len(inner)))
	after := s.read(inner, true)
	now, ok := wholeText(after)
	if len(inner) == 0 {
		now, ok = "", true
	}
	if !ok {
		return nil, &EditError{
			Message: "masked in part and above " + deadletter.Bytes(maxText) +
				", the new text could not be shown: replace the body as a whole",
		}
	}
	e.Text, e.Diff = after.Text, diff(s.text, now)
	return e, s.finish(e, inner)
}

// escapePattern matches the escape sequences that the function "visible" writes.
var escapePattern = regexp.MustCompile(`\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[abfnrtv])`)

// restoreLines puts the stored lines back in place of lines that are shown differently. If several
// lines look alike, they are restored in their original order, as long as their number has not
// changed.
func restoreLines(stored, shown, text string) (string, error) {
	olds, seen, lines := strings.Split(stored, "\n"), strings.Split(shown, "\n"), strings.Split(text, "\n")
	if len(olds) != len(seen) { // a masked value contains line ends
		olds, seen = nil, nil
	}
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
	times := make(map[string]int)
	for _, line := range lines {
		times[line]++
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
			return "", fail(keepsMasked)
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
