package failure

import (
	"regexp"
	"strings"
)

// afterAt removes the word "at" with which Java, .NET and Node begin a frame. .NET writes this word
// in the language of the machine.
func afterAt(t string) (string, bool) {
	for _, at := range []string{"at ", "bei ", "à ", "en ", "em ", "в ", "w "} {
		if rest, ok := strings.CutPrefix(t, at); ok &&
			(at == "at " || strings.Contains(rest, "(") &&
				!strings.Contains(rest[:strings.IndexByte(rest, '(')], " ")) {
			return strings.TrimSpace(rest), rest != ""
		}
	}
	return "", false
}

// atFrame parses the text that follows "at":
//
//	com.acme.orders.OrderService.place(OrderService.java:42)
//	Acme.Orders.PlaceHandler.Handle(Place message, IContext context) in /src/PlaceHandler.cs:line 42
//	async OrderService.place [as handle] (/app/src/orders.js:42:13)
//	/app/src/orders.js:42:13
func atFrame(rest string) (frame, bool) {
	open := strings.IndexByte(rest, '(')
	switch {
	case open < 0 && strings.Contains(strings.TrimPrefix(rest, "async "), " "): // this is a sentence and not a frame
		return frame{}, false
	case open < 0 && (strings.ContainsAny(rest, `/\`) || strings.HasPrefix(rest, "node:") ||
		strings.HasPrefix(rest, "<anonymous>")):
		return scriptFrame("", strings.TrimPrefix(rest, "async "))
	case open > 0 && rest[open-1] == ' ' && strings.HasSuffix(rest, ")"):
		return scriptFrame(rest[:open-1], rest[open+1:len(rest)-1])
	case open == 0, open < 0 && !strings.Contains(rest, "."):
		return frame{}, false
	case open > 0:
		rest = rest[:open]
	}
	if strings.ContainsAny(rest, " \t") && !strings.Contains(rest, "[") {
		return frame{}, false
	}
	if strings.Contains(rest, "$$Lambda") { // this frame only calls the lambda, which has its own frame
		return frame{}, true
	}
	// for example java.base@21/java.lang.Thread.run or app//com.acme.Main.main
	rest = rest[strings.LastIndexByte(rest, '/')+1:]
	name := sourceName(rest)
	return frame{name: name, own: name != "" && !beginsWithAny(name, dottedOthers)}, name != ""
}

// sourceName returns the name of a JVM or .NET function as it is written in the source code.
func sourceName(name string) string {
	name, _, _ = strings.Cut(name, "[") // type arguments
	var kept []string
	for part := range strings.SplitSeq(name, ".") {
		// for example <>c__DisplayClass3_0 or $$Lambda$14
		if strings.HasPrefix(part, "<>") || strings.HasPrefix(part, "$$") {
			continue
		}
		// for example <Handle>d__5, <Handle>b__0 or <Handle>g__Save|3_0
		if inner, ok := strings.CutPrefix(part, "<"); ok && !strings.HasPrefix(part, "<init>") &&
			!strings.HasPrefix(part, "<clinit>") {
			outer, rest, _ := strings.Cut(inner, ">")
			if kept = append(kept, outer); strings.HasPrefix(rest, "g__") {
				local, _, _ := strings.Cut(rest[len("g__"):], "|")
				kept = append(kept, local)
			}
			continue
		}
		if part, _, _ = strings.Cut(part, "$$"); part == "" { // for example OrderService$$SpringCGLIB$$0
			continue
		}
		part, _, _ = strings.Cut(part, "`") // for example Saga`1
		for _, made := range []string{"lambda$", "$anonfun$", "access$"} {
			part = strings.TrimPrefix(part, made)
		}
		if plus := strings.Index(part, "+<"); plus >= 0 { // for example Outer+<>c__DisplayClass or Outer+<Handle>d__5
			if part = part[:plus] + "." + strings.TrimPrefix(
				sourceName(part[plus+1:]), ".",
			); strings.HasSuffix(part, ".") {
				part = part[:len(part)-1]
			}
		}
		kept = append(kept, counters.ReplaceAllString(part, ""))
	}
	if n := len(kept); n > 1 && kept[n-1] == "MoveNext" { // an async state machine
		kept = kept[:n-1]
	}
	return strings.Join(kept, ".")
}

// counters matches numbers that compilers add to names, such as $1 and $0.
var counters = regexp.MustCompile(`\$[0-9]+`)

// scriptFrame parses a Node frame. It puts the name of the file before the name of the function,
// because the function name is often just one word.
func scriptFrame(name, at string) (frame, bool) {
	if name == "" && !strings.Contains(at, ":") && !strings.HasPrefix(at, "<anonymous>") {
		return frame{}, false
	}
	name, _, _ = strings.Cut(name, " [as ")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "async "), "new ")
	path := withoutPosition(strings.TrimPrefix(at, "file://"))
	own := !strings.HasPrefix(at, "node:") && !strings.HasPrefix(at, "internal/") &&
		!strings.HasPrefix(at, "<anonymous>") && !strings.HasPrefix(at, "native") && !strings.HasPrefix(at, "index ") &&
		!isForeign(path)
	if strings.HasSuffix(name, "<anonymous>") {
		name = ""
	}
	return frame{name: inFile(path, name), own: own}, true
}

// withoutPosition removes the line and the column from the end of a path.
func withoutPosition(path string) string {
	for range 2 {
		i := strings.LastIndexByte(path, ':')
		if i < 0 || strings.Trim(path[i+1:], "0123456789") != "" {
			break
		}
		path = path[:i]
	}
	return path
}

// inFile returns the name of a file, followed by ":" and the name of a function. It removes a hash
// from the name of the file.
func inFile(path, name string) string {
	path = strings.ReplaceAll(path, `\`, "/")
	file := foldChunkOf(path[strings.LastIndexByte(path, '/')+1:])
	if name == "" {
		return file
	}
	return file + ":" + name
}
