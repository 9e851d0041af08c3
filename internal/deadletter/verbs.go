package deadletter

// What a principal does to a place, besides acting on its letters.
const (
	VerbStore    Verb = "store"    // say whether the store is current, or a copy
	VerbRedirect Verb = "redirect" // send the letters of a queue to another
	VerbGuard    Verb = "guard"    // pause the retries of a queue or a group, and resume them
	VerbAnnotate Verb = "annotate" // say why letters were rejected
	VerbImport   Verb = "import"   // take in letters that another dlo exported
	VerbConnect  Verb = "connect"  // try at once to connect to a broker
	VerbTry      Verb = "try"      // send a letter of dlo's own the whole way
)

// What a principal does beside letters and their places.
const (
	VerbTriage Verb = "groups"  // decide on groups
	VerbTell   Verb = "notices" // send the digest now
	VerbDeploy Verb = "deploys" // mark deploys
)
