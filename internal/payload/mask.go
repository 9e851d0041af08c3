package payload

// Mask decides about one value: it returns what to show in its place and true, or anything and false. The path has the names of the
// schema joined by dots, "to.address"; elements of a list have the path of the list, entries of a map have the path of the map and their
// key; a field that the type does not know has its number as name; a text body has the path "". JSON bodies have the names of the JSON. The
// value is the text of a leaf of any kind: numbers in decimal, enums by name, times as the view writes them, bytes as they are. Map keys and JSON names
// are asked about as well, with the path of what holds them. Paths end at 1 KiB.
//
// A Mask must be safe for concurrent use, and give the same answer each time it is asked.
type Mask func(path, value string) (shown string, masked bool)

// apply is safe on nil.
func (m Mask) apply(path, value string) (string, bool) {
	if m == nil {
		return value, false
	}
	shown, masked := m(path, value)
	if !masked {
		return value, false
	}
	return shown, true
}

const maxPath = 1 << 10

// join adds a name to a path. A path that would be longer than maxPath stays as it is: what lies deeper shares it.
func join(path, name string) string {
	if len(path)+len(name) >= maxPath {
		return path
	}
	if path == "" {
		return name
	}
	return path + "." + name
}
