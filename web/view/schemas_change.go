package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// SchemaUploadPage is the page after the upload of a file with schemas. Before the file is used,
// this page shows what it would change.
type SchemaUploadPage struct {
	Shell
	descriptor.Change
	deadletter.SchemaEffect
	Key     string // the key of the file that the server keeps until it is used
	Was     string // the version in use; "" if the set is new
	WasAt   time.Time
	Problem string
}

// SchemaRemovePage shows what would happen if a set were removed.
type SchemaRemovePage struct {
	Shell
	Set string
	deadletter.SchemaEffect
}

const namesInList = 30 // the maximum number of names of types in one list

// inUse reports whether the file is already in use.
func (p SchemaUploadPage) inUse() bool { return p.Known == descriptor.KnownCurrent }

func (p SchemaUploadPage) title() string {
	switch {
	case p.inUse():
		return "Set " + line(p.Set, 120) + " stays as it is"
	case p.Was == "":
		return "New set " + line(p.Set, 120)
	}
	return "New version of set " + line(p.Set, 120)
}

// addedWords returns words with the number of new types and, if there are any, of new enums.
func (p SchemaUploadPage) addedWords() string {
	text := Number(len(p.Added)-p.Enums, "type", "types")
	if p.Enums > 0 {
		text += " and " + Number(p.Enums, "enum", "enums")
	}
	return text
}

// comparedWords describes the version with which the file is compared.
func (p SchemaUploadPage) comparedWords() string {
	text := Number(p.Types, "type", "types") + " in " + Number(p.Files, "file", "files") + ", version " +
		shortVersion(p.Version) + ". "
	switch {
	case p.inUse():
		return text + "It is the version in use."
	case p.Was == "":
		return text + "Nothing is changed yet."
	}
	text += "Compared with version " + shortVersion(p.Was) + ", uploaded " + When(p.Now, p.WasAt) +
		". "
	if p.Known == descriptor.KnownOlder {
		text += "The set had this version before; it would be the newest again. "
	}
	return text + "Nothing is changed yet."
}

// effects describes the effects of the uploaded schemas, one sentence each.
func (p SchemaUploadPage) effects() []string {
	out := []string{
		p.addedWords() + " added, " + Count(len(p.Changed)) + " changed, " + Count(len(p.Removed)) + " removed" +
			removedNote(len(p.Removed)) + ".",
		Number(p.Letters, "stored letter has", "stored letters have") +
			" a type that the new version would decode, or would decode differently.",
	}
	if p.Sampled > 0 {
		out = append(
			out,
			Count(p.Readable)+" of "+Number(p.Sampled, "letter", "letters")+
				" that no schema can decode now would decode"+sampledNote(p.Sampled)+".",
		)
	} else {
		out = append(out, "A schema can decode each of the newest letters.")
	}
	if len(p.Missing) > 0 {
		out = append(out, lacksSentence(p.Missing))
	}
	if n := len(p.Conflicts); n > 0 {
		out = append(
			out,
			Number(n, "type is", "types are")+
				" defined differently by other sets; a body is decoded with the definition that fits.",
		)
	}
	return append(out, "Affected letters are decoded again in the background; their states do not change.")
}

// lacksSentence says which imported files a set lacks, and what follows from it.
func lacksSentence(files []string) string {
	const shown = 5
	var names []string
	for _, f := range files[:min(len(files), shown)] {
		names = append(names, line(f, 80))
	}
	if n := len(files) - shown; n > 0 {
		names = append(names, Number(n, "more file", "more files"))
	}
	return "It imports " + enumerated(names) + ", and " + plural(len(files), "this file is", "these files are") +
		" not in it. Options that come from there have no effect, and fields of types from there stay unresolved."
}

func removedNote(n int) string {
	if n == 0 {
		return ""
	}
	return ", which still decode old letters"
}

func sampledNote(n int) string {
	if n < 2 {
		return ""
	}
	return " (the newest were tried)"
}
