package deadletter

// Glob reports whether a pattern matches a whole name. A * in the pattern matches any number of
// bytes, including dots. If the parameter "marks" is true, a ? matches any single byte. Otherwise a
// ? matches only itself. Glob takes at most len(pattern) x len(name) steps.
func Glob(pattern, name string, marks bool) bool {
	star, mark := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (marks && pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
