package payload

// jsonFrameworks contains the frameworks that describe a message in its JSON body, and do not
// declare that they do.
var jsonFrameworks = []func(*reading){
	(*reading).laravel, (*reading).dramatiq, (*reading).eventType, (*reading).nestJS,
}

// readFramework adds to the document what a framework says about the message in its JSON body. The
// first framework that says anything counts.
func (r *reading) readFramework() {
	for _, read := range jsonFrameworks {
		if r.doc.Failure.MessageType == "" {
			read(r)
		}
	}
}

// word returns the text at a path of a JSON body. It returns "" if the text is masked or too long
// for a name.
func (d *Document) word(path string) string {
	if n := d.scalarAt(path); n != nil && n.Kind == String && !n.Masked && len(n.text) < maxAttribute {
		return n.text
	}
	return ""
}
