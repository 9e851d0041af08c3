package deadletter

// These are the actions of a principal on a place, except the actions on the place's letters.
const (
	VerbStore    Verb = "store"    // declare whether the store is current or a copy
	VerbRedirect Verb = "redirect" // redirect the letters of a queue to another
	VerbGuard    Verb = "guard"    // pause and resume the retries of a queue or a group
	VerbAnnotate Verb = "annotate" // report why letters were rejected
	VerbImport   Verb = "import"   // import letters that another dlo exported
	VerbConnect  Verb = "connect"  // try to connect to a broker immediately
	VerbTry      Verb = "try"      // send a trial letter of dlo's own
	VerbAdopt    Verb = "adopt"    // set policies that lead dead letters to dlo, and remove those policies
)

// These are the actions of a principal on things other than letters and their places.
const (
	VerbTriage   Verb = "groups"    // decide on groups
	VerbTell     Verb = "notices"   // send the digest now
	VerbDeploy   Verb = "deploys"   // mark deploys
	VerbViews    Verb = "views"     // save and delete views that everybody sees
	VerbOwnViews Verb = "own views" // save and delete one's own views
	VerbAccess   Verb = "access"    // see and change who may do what
)
