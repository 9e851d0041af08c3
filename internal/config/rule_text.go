package config

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// ruleText returns the i-th rule of a list exactly as it is written in the file. In a block list, a
// rule consists of whole lines and begins with the line of its dash. In a list in brackets, it is
// the text between the commas. Comments inside the rule belong to it, and comments above it do not.
// The parameter "end" is the number of the line after the list.
func (d *decoder) ruleText(list *yaml.Node, i, end int) string {
	if d.lines == nil { // the text is not needed
		return ""
	}
	if list.Style&yaml.FlowStyle != 0 {
		return d.flowText(list.Content[i])
	}
	from := d.dash(list, i)
	if i+1 < len(list.Content) {
		end = d.dash(list, i+1)
	}
	if from < 1 || end > len(d.lines)+1 || end <= from {
		return ""
	}
	lines := d.lines[from-1 : end-1]
	if k := slices.IndexFunc(lines, endsDocument); k > 0 {
		lines = lines[:k]
	}
	for len(lines) > 1 && isOutsideRule(lines[len(lines)-1], indentation(lines[0])) {
		lines = lines[:len(lines)-1]
	}
	return trimBreak(strings.Join(lines, ""))
}

// dash returns the number of the line that contains the dash of the i-th item of a YAML list. The
// dash may stand on a line above the text of the item.
func (d *decoder) dash(list *yaml.Node, i int) int {
	above := list.Line
	if i > 0 {
		above = list.Content[i-1].Line + 1
	}
	for line := min(list.Content[i].Line, len(d.lines)); line >= above; line-- {
		text := strings.TrimLeft(d.lines[line-1], " \ufeff")
		if rest, ok := strings.CutPrefix(text, "-"); ok && strings.TrimLeft(rest, " \t\r\n\u0085\u2028\u2029") != rest {
			return line
		}
	}
	return list.Content[i].Line
}

// isOutsideRule reports whether a line after a rule does not belong to the rule. This is so for an
// empty line, and for a comment that is not indented more than the dash.
func isOutsideRule(line string, dash int) bool {
	text := strings.TrimSpace(line)
	return text == "" || text[0] == '#' && indentation(line) <= dash
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func endsDocument(line string) bool {
	text := strings.TrimRight(line, " \t\r\n")
	return text == "..." || text == "---"
}

// splitLines splits a text into lines as YAML does. The lines keep their line endings.
func splitLines(text string) []string {
	var lines []string
	for len(text) > 0 {
		end := strings.IndexAny(text, "\r\n\u0085\u2028\u2029")
		if end < 0 {
			return append(lines, text)
		}
		_, size := utf8.DecodeRuneInString(text[end:])
		if strings.HasPrefix(text[end:], "\r\n") {
			size = 2
		}
		lines, text = append(lines, text[:end+size]), text[end+size:]
	}
	return lines
}

func trimBreak(text string) string {
	for _, end := range []string{"\r\n", "\n", "\r", "\u0085", "\u2028", "\u2029"} {
		if cut, ok := strings.CutSuffix(text, end); ok {
			return cut
		}
	}
	return text
}

// flowText returns the text of an item as the file contains it. The item belongs to a YAML list
// that is written in brackets.
func (d *decoder) flowText(n *yaml.Node) string {
	if n.Line < 1 || n.Line > len(d.lines) {
		return ""
	}
	text := strings.TrimPrefix(d.lines[n.Line-1], "\ufeff")
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	text += strings.Join(d.lines[n.Line:], "")
	return strings.TrimSpace(text[:flowEnd(text)])
}

// flowEnd returns the position at which a YAML value at the beginning of a text ends. The value is
// an item of a list in brackets. If the value has brackets of its own, it ends after its closing
// bracket. Otherwise it ends before the next comma or bracket.
func flowEnd(text string) int {
	depth := 0
	fresh, quoted := true, false // fresh: a quoted text could begin here; quoted: a quoted text has just ended
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case (c == '"' || c == '\'') && fresh:
			i = closing(text, i)
			fresh, quoted = false, true
			continue
		case c == '{' || c == '[':
			depth++
			fresh = true
		case c == '}' || c == ']':
			if depth--; depth < 0 {
				return i
			}
			if depth == 0 {
				return i + 1
			}
			fresh = false
		case c == ',':
			if depth == 0 {
				return i
			}
			fresh = true
		case c == ':' && (quoted || i+1 < len(text) && strings.IndexByte(" \t\r\n", text[i+1]) >= 0):
			fresh = true
		case c == '#' && (i == 0 || strings.IndexByte(" \t\r\n", text[i-1]) >= 0):
			if end := strings.IndexAny(text[i:], "\r\n"); end >= 0 {
				i += end
				continue
			}
			return len(text)
		case (c == '&' || c == '!') && fresh: // an anchor or a tag, after which the value follows
			for i+1 < len(text) && strings.IndexByte(" \t\r\n,{}[]", text[i+1]) < 0 {
				i++
			}
		case strings.IndexByte(" \t\r\n", c) < 0:
			fresh = false
		default:
			continue
		}
		quoted = false
	}
	return len(text)
}

// closing returns the position of the quote that closes a quoted text. The parameter i is the
// position of the quote that opens it.
func closing(text string, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch {
		case quote == '"' && text[i] == '\\':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i
		}
	}
	return len(text) - 1
}
