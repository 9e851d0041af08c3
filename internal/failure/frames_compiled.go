package failure

import "strings"

// goFrame parses a function and its file on the next line:
//
//	github.com/acme/shop/orders.(*Handler).Place(0xc000118000, {0x1, 0x2})
//		/app/orders/handler.go:42 +0x1d
func goFrame(t, file string) (frame, bool) {
	t = strings.TrimPrefix(t, "created by ")
	t, _, _ = strings.Cut(t, " in goroutine ")
	if strings.HasPrefix(t, "panic(") {
		return frame{panics: true}, true
	}
	if strings.HasSuffix(t, ")") {
		depth := 0
		for i := len(t) - 1; i > 0; i-- { // removes the arguments, but not the receiver
			if t[i] == ')' {
				depth++
			} else if t[i] == '(' {
				if depth--; depth == 0 {
					if t[i-1] != '.' {
						t = t[:i]
					}
					break
				}
			}
		}
	}
	if strings.ContainsAny(t, " \t") || !strings.Contains(t, ".") {
		return frame{}, false
	}
	pkg := t[strings.LastIndexByte(t, '/')+1:]
	first, _, _ := strings.Cut(t, "/")
	first, _, _ = strings.Cut(first, ".")
	file, _, _ = strings.Cut(file, " ")
	own := !goStandard[first] && !isForeign(file) && !strings.Contains(file, "@v")
	if strings.HasPrefix(t, "main.") {
		own = true
	}
	if i := strings.IndexByte(pkg, '['); i >= 0 { // type arguments: [...]
		if j := strings.IndexByte(pkg, ']'); j > i {
			pkg = pkg[:i] + pkg[j+1:]
		}
	}
	return frame{name: withoutClosures(pkg), own: own}, true
}

// withoutClosures removes the suffixes .func1, .func1.2, .gowrap1 and .deferwrap1.
func withoutClosures(name string) string {
	for {
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return name
		}
		end := name[i+1:]
		for _, made := range []string{"func", "gowrap", "deferwrap", ""} {
			if number, ok := strings.CutPrefix(end, made); ok && number != "" &&
				strings.Trim(number, "0123456789-") == "" {
				end = ""
				break
			}
		}
		if end != "" {
			return name
		}
		name = name[:i]
	}
}

// rustFrame parses "4: shop::orders::place::h1a2b3c4d5e6f7a8b". The file is on the next line: "at
// ./src/orders.rs:42:5".
func rustFrame(t, next string) (frame, bool) {
	number, name, _ := strings.Cut(t, ": ")
	if strings.Trim(number, "0123456789") != "" {
		return frame{}, false
	}
	name = strings.TrimSpace(name)
	if rest, ok := strings.CutPrefix(name, "0x"); ok { // in a full backtrace, an address comes first
		_, name, _ = strings.Cut(rest, " - ")
	}
	if name == "" || strings.Contains(name, ": ") || strings.Contains(name, " ") && !strings.HasPrefix(name, "<") {
		return frame{}, false
	}
	if i := strings.LastIndex(name, "::h"); i > 0 && len(name)-i == len("::h")+16 {
		name = name[:i]
	}
	name = strings.ReplaceAll(name, "::{{closure}}", "")
	others := beginsWithAny(strings.TrimLeft(name, "<&*"), rustOthers) || !strings.Contains(name, "::") ||
		strings.Contains(next, "/rustc/") || strings.Contains(next, "/.cargo/registry/")
	return frame{name: name, own: !others, rust: true}, true
}
