// Package system contains the tests of the whole program: kills, faults, the paths of a letter
// through server, broker and command line, the promises of the documents, and the measurements. The
// test binary runs dlo itself as a child process, like cmd/dlo, with named points at which it kills
// itself. The package contains no production code.
package system
