package deadletter

// Transitions is the state table in code.
var Transitions = transitions
