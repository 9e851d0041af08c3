package view

// documents is where the documents of dlo are on the web.
const documents = "https://github.com/deadletteroffice/dlo/blob/main/docs/"

// glossary contains the words that a newcomer needs. The table of docs/glossary.md is the same.
var glossary = []struct{ word, meaning string }{
	{"letter", "a message that a consumer gave up on, as dlo stores it, with its bytes, headers and history"},
	{"origin queue", "the queue in which a letter died; dlo sends the letter back to the end of this queue"},
	{"inbox", "a dead-letter queue that dlo empties; in Triage, the groups that wait for a decision"},
	{"group", "the letters that fail for the same cause"},
	{"not failing", "no letter of the group has died for a while, but its letters may still wait for people"},
	{"dead", "the letter has no retry left, and waits for a person"},
	{"held", "a person or a check of dlo stopped the letter, and dlo does not send it until somebody releases it"},
	{"operation", "one action on many letters, which the server carries out"},
	{"canary", "the few letters that an operation sends first; if too many come back, the operation stops"},
	{"quiet", "the letter was sent back and has not come back; dlo cannot see whether its consumer succeeded"},
}

// document returns the URL of the document about the current page.
func (s Shell) document() string {
	for _, p := range Places {
		if p.Section == s.Section {
			return documents + p.document
		}
	}
	return documents + "README.md"
}
