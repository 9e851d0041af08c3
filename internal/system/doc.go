// Package system contains the tests of the whole program. They test kills, faults, the paths of a
// letter through server, broker and command line, and the promises in the documentation. They also
// make measurements. The test binary runs dlo as a child process, like cmd/dlo, and the child can
// kill itself at named points. The package contains no production code.
package system
