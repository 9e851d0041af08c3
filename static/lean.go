package static

import (
	"bytes"
	"path"
	"strings"
)

// tight takes the space out of a style sheet that says nothing: around braces, after semicolons and commas.
var tight = strings.NewReplacer(" { ", "{", "; }", "}", " }", "}", "} ", "}", "; ", ";", ", ", ",", ": ", ":")

// lean is what is sent of a file of ours: without lines that are comments, and without indents. Its texts must be on one line, and those of style sheets without the punctuation that tight
// takes the space from; a test holds the files to that.
func lean(name string, body []byte) []byte {
	sheet := path.Ext(name) == ".css"
	if !sheet && path.Ext(name) != ".js" {
		return body
	}
	var out bytes.Buffer
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		comment := strings.HasPrefix(line, "//") || sheet && strings.HasPrefix(line, "/*") && strings.HasSuffix(line, "*/") && strings.Count(line, "*/") == 1
		if line == "" || comment {
			continue
		}
		if sheet {
			line = tight.Replace(line)
		}
		out.WriteString(line + "\n")
	}
	return out.Bytes()
}
