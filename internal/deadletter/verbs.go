package deadletter

// These are the actions on a place, other than the actions on the letters of the place.
const (
	VerbStore    Verb = "store"    // declare the store current, or declare it a copy
	VerbBackup   Verb = "backup"   // take a backup of the store, which contains everything, masked or not
	VerbRedirect Verb = "redirect" // redirect the letters of a queue to another queue
	VerbGuard    Verb = "guard"    // pause and resume the retries of a queue or a group
	VerbAnnotate Verb = "annotate" // report why letters were rejected
	VerbImport   Verb = "import"   // import letters that another dlo exported
	VerbConnect  Verb = "connect"  // try to connect to a broker immediately
	VerbTry      Verb = "try"      // send a trial letter
	VerbAdopt    Verb = "adopt"    // set policies that lead dead letters to dlo, and remove them
)

// These are the actions that concern neither letters nor places.
const (
	VerbTriage   Verb = "groups"    // decide about groups
	VerbTell     Verb = "notices"   // send the digest now
	VerbDeploy   Verb = "deploys"   // record deploys
	VerbViews    Verb = "views"     // save and delete queries for everybody
	VerbOwnViews Verb = "own views" // save and delete one's own queries
	VerbSettings Verb = "settings"  // save settings in the configuration file
	VerbAccess   Verb = "access"    // see and change who may do what
)
