package view

import "time"

// SchemaUploadPage is the page after the upload of a file with schemas. Before the file is used,
// this page shows what it would change.
type SchemaUploadPage struct {
	Shell
	Key          string // the key of the file that the server keeps until it is used
	Set, Version string
	Was          string // the version in use; "" if the set is new
	WasAt        time.Time
	Known        string // "current": nothing would change; "older": an earlier version of the set; "": new
	Types, Files int
	Added        []string
	Enums        int // the number of enums in Added
	Changed      []ChangedType
	Removed      []string
	Conflicts    []ChangedType
	Letters      int // the number of letters of a type that would be decoded differently
	Sampled      int // the number of newest letters that no schema decodes
	Readable     int // the number of these letters that could then be decoded
	Problem      string
}

// SchemaRemovePage shows what would happen if a set were removed.
type SchemaRemovePage struct {
	Shell
	Set            string
	Types, Letters int
}

const namesInList = 30 // the maximum number of names of types in one list

// inUse reports whether the file is already in use.
func (p SchemaUploadPage) inUse() bool { return p.Known == "current" }

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
		SchemaVersion{Version: p.Version}.short() + ". "
	switch {
	case p.inUse():
		return text + "It is the version in use."
	case p.Was == "":
		return text + "Nothing is changed yet."
	}
	text += "Compared with version " + SchemaVersion{Version: p.Was}.short() + ", uploaded " + When(p.Now, p.WasAt) +
		". "
	if p.Known == "older" {
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
	if n := len(p.Conflicts); n > 0 {
		out = append(
			out,
			Number(n, "type is", "types are")+
				" defined differently by other sets; a body is decoded with the definition that fits.",
		)
	}
	return append(out, "Affected letters are decoded again in the background; their states do not change.")
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
