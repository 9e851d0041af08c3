package deadletter

import "strings"

// OwnQueue says whether a queue belongs to dlo itself on any broker: what waits or is watched there has no origin there, and nothing is requeued to it.
func OwnQueue(name string) bool { return strings.HasPrefix(name, "dlo.") }
