// Package system holds the tests of the whole program: kills, faults, the ways of a letter through
// server, broker and command line, what the documents promise, and the measurements. The test
// binary runs dlo itself as its child, as cmd/dlo does, with named points at which it kills itself.
// The package has no code of the product.
package system
