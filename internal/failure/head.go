package failure

import (
	"iter"
	"slices"
	"strings"
)

// lines returns the lines of a text without their line ends. It returns at most maxLines lines.
func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for n := 0; text != "" && n < maxLines; n++ {
			var line string
			line, text, _ = strings.Cut(text, "\n")
			if !yield(strings.TrimSuffix(line, "\r")) {
				return
			}
		}
	}
}

const maxLines = 2000 // maximum number of lines of a stack that are read; deeper recursion adds nothing new

// head returns the type and the message at the beginning of a stack trace. In a Python trace, it
// finds them at the end. If the trace names no type, head returns only the message. If the trace
// begins with a frame, head returns nothing.
func head(stack string) (typ, message string) {
	first, last, python := "", "", false
	for line := range lines(stack) {
		text := strings.TrimSpace(line)
		switch {
		case text == "":
			continue
		case first == "":
			first = text
			python = strings.HasPrefix(text, "Traceback (most recent call last)")
		}
		if !python {
			break
		}
		if line == text { // frames and source lines are indented; a message may have several lines
			if t, _ := headOf(text); t != "" || last == "" || last == first {
				last = text
			}
		}
	}
	if python && last != first {
		first = last
	}
	if first == "" || isFrame(first) {
		return "", ""
	}
	typ, message = headOf(first)
	if dotNetWrappers[typ] {
		if _, inner, ok := strings.Cut(stack, "---> "); ok {
			inner, _, _ = strings.Cut(inner, "\n")
			if t, m := headOf(strings.TrimSpace(inner)); t != "" && !dotNetWrappers[t] {
				return t, strings.TrimSuffix(m, "<---")
			}
		}
	}
	return typ, message
}

// dotNetWrappers lists .NET exceptions that do nothing but wrap another exception.
var dotNetWrappers = map[string]bool{
	"System.AggregateException": true, "System.Reflection.TargetInvocationException": true,
}

// Head splits the text of an error, as lists show it, into its type and its message. The type is
// the beginning of the text, or "" if the text names no type.
func Head(line string) (typ, message string) {
	if typ, message, ok := strings.Cut(line, ": "); ok && isType(typ) { // also finds Ruby types such as Mail::Missing
		return typ, message
	}
	return headOf(line)
}

// headOf splits one line into type and message. It knows the forms "Type: message", "Type", "**
// (Type) message" of Elixir, "panic: message" of Go, and "at.rb:1:in `x': message (Type)" of Ruby.
func headOf(line string) (typ, message string) {
	line = strings.TrimPrefix(line, "PHP Fatal error:  Uncaught ")
	if rest, ok := strings.CutPrefix(line, "Exception in thread "); ok {
		if _, after, ok := strings.Cut(rest, `" `); ok {
			line = after
		}
	}
	if rest, ok := strings.CutPrefix(line, "** ("); ok {
		if t, m, ok := strings.Cut(rest, ")"); ok && isType(t) {
			return t, strings.TrimSpace(m)
		}
	}
	if m, ok := strings.CutPrefix(line, "panic: "); ok {
		return "", m
	}
	if t, m, ok := strings.Cut(line, ":"); ok && (m == "" || m[0] == ' ') && isType(t) {
		return t, withoutPlace(strings.TrimSpace(m))
	}
	if isType(line) {
		return line, ""
	}
	if _, rest, ok := strings.Cut(line, ":in "); ok && strings.HasSuffix(line, ")") {
		if i := strings.LastIndex(rest, " ("); i > 0 && isType(rest[i+2:len(rest)-1]) {
			if _, m, ok := strings.Cut(rest[:i], "': "); ok {
				return rest[i+2 : len(rest)-1], m
			}
		}
	}
	return "", line
}

// PHP appends to a message the position at which the exception was created: " in
// /app/src/Handler.php:42". withoutPlace removes this position.
func withoutPlace(message string) string {
	i := strings.LastIndex(message, " in /")
	if i < 0 {
		return message
	}
	file, number, ok := strings.Cut(message[i+len(" in "):], ".php:")
	if !ok || strings.ContainsAny(file, " \t") || strings.Trim(number, "0123456789") != "" {
		return message
	}
	return message[:i]
}

// isType reports whether a text is the name of an error type. Such a name has a namespace, or it
// has an ending such as "Error" or "Exception".
func isType(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	spaces, begins := 0, true
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '.' || c == '\\' || c == ':' || c == '+':
			if begins && c != ':' { // Ruby separates namespaces with ::
				return false
			}
			begins = true
			spaces++
		case c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
			begins = false
		case c == '`' || c >= '0' && c <= '9':
			if begins {
				return false
			}
		default:
			return false
		}
	}
	if begins {
		return false
	}
	short := name[strings.LastIndexAny(name, `.\:+`)+1:]
	if short[0] >= 'a' && short[0] <= 'z' && spaces == 0 {
		return false
	}
	ends := []string{"Error", "Exception", "Fault", "Failure", "Interrupt", "Timeout", "Exit", "Warning"}
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(short, end) }) ||
		spaces > 0 && short[0] >= 'A' && short[0] <= 'Z'
}
