package failure

import "strings"

// pythonFrame parses a line such as: File "/app/orders/handlers.py", line 42, in handle
func pythonFrame(t string) (frame, bool) {
	path, rest, ok := strings.Cut(t[len(`File "`):], `"`)
	if !ok {
		return frame{}, false
	}
	_, name, _ := strings.Cut(rest, ", in ")
	name = strings.TrimSpace(name)
	if name == "<module>" || name == "<lambda>" {
		name = ""
	}
	return frame{name: inFile(path, name), own: !isForeign(path), python: true}, true
}

// phpFrame parses a line such as: #0 /app/src/PlaceHandler.php(42):
// App\PlaceHandler->__invoke(Object(App\Place)). If the function has no class, it puts the name of
// the file before the name of the function. It drops the arguments, which may be cut off.
func phpFrame(t string) (frame, bool) {
	_, rest, ok := strings.Cut(t, " ")
	if !ok {
		return frame{}, false
	}
	path, call, ok := strings.Cut(rest, ": ")
	if !ok {
		return frame{}, rest == "{main}"
	}
	if i := strings.LastIndexByte(path, '('); i > 0 {
		path = path[:i]
	}
	name, _, _ := strings.Cut(call, "(")
	if i := strings.Index(name, "@anonymous"); i >= 0 { // for example class@anonymous /app/x.php:12$0
		if j := strings.Index(name, "->"); j > i {
			name = name[:i] + name[j:]
		}
	}
	if strings.Contains(name, "{closure") { // since 8.4, the closure has a position: {closure:App\X::y():12}
		name, _, _ = strings.Cut(name, "{closure")
		name += "{closure}"
	}
	// The file in a frame is the file that contains the call, not the file of the called function.
	// If the consumer calls a function of a framework, the file therefore belongs to the consumer,
	// and only the name of the function shows that the function belongs to the framework.
	others := beginsWithAny(strings.TrimPrefix(name, `\`), phpOthers) ||
		path == "[internal function]" && !strings.Contains(name, `\`)
	if !strings.ContainsAny(name, `\>:`) {
		others = others || isForeign(path)
		name = inFile(path, name)
	}
	return frame{name: name, own: !others}, true
}

// rubyFrame parses a line such as: /app/workers/order_worker.rb:42:in `block (2 levels) in work'.
// Since Ruby 3.4, the end is: in 'OrderWorker#work'.
func rubyFrame(t string) (frame, bool) {
	place, name, _ := strings.Cut(t, ":in ")
	place = strings.TrimPrefix(place, "from ")
	path := withoutPosition(place)
	// the last condition recognises the head of a trace
	if path == place || len(name) < 2 || name[0] != '`' && name[0] != '\'' || strings.Contains(name, "': ") {
		return frame{}, false
	}
	name = strings.TrimSuffix(name[1:], "'")
	if i := strings.LastIndex(name, " in "); i >= 0 { // removes "block in", "rescue in" and "ensure in"
		name = name[i+len(" in "):]
	}
	return frame{name: inFile(path, name), own: !isForeign(path)}, true
}

// elixirFrame parses a line such as: (shop 0.1.0) lib/shop/worker.ex:42: Shop.Worker.handle/2
func elixirFrame(t string) (frame, bool) {
	app := ""
	if t[0] == '(' {
		var ok bool
		if app, t, ok = strings.Cut(t[1:], ") "); !ok {
			return frame{}, false
		}
		app, _, _ = strings.Cut(app, " ")
	}
	path, name, ok := strings.Cut(t, ": ")
	if !ok || withoutPosition(path) == path || strings.Contains(path, " ") {
		return frame{}, false
	}
	if i := strings.LastIndex(name, " in "); i >= 0 { // for example "anonymous fn/1 in"
		name = name[i+len(" in "):]
	}
	return frame{
		name: name,
		own:  !elixirOthers[app] && !strings.HasPrefix(name, ":") && !strings.Contains(path, "deps/"),
	}, true
}
