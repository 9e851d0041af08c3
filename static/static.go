// Package static contains the files that pages load: style sheets, scripts and images. Each file is
// served under a name that contains a hash of its content. So browsers can cache a file forever,
// and a new version of dlo never uses an old file. The package renders nothing and does not depend
// on the pages.
package static

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
)

//go:embed css js img
var embedded embed.FS

// Prefix is the path under which the files are served.
const Prefix = "/static/"

// types contains the Content-Type of each file type that the folders may contain. The tests fail if
// a folder contains a file of any other type.
var types = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

type file struct {
	body []byte
	kind string
}

type files struct {
	urls   map[string]string // the URL of each file by its name in the folder
	byPath map[string]file   // the content of each file by its URL
}

var load = sync.OnceValue(func() files {
	loaded, err := read(embedded)
	if err != nil {
		panic(err) // this cannot happen: the files are embedded, and the tests of the package load them
	}
	return loaded
})

// URL returns the path under which a file is served, for example /static/css/style.1f0c9a72b4d3.css
// for "css/style.css". It panics if the file does not exist. Names in the pages are constants, so
// any test that renders the page finds a wrong name.
func URL(name string) string {
	url, ok := load().urls[name]
	if !ok {
		panic(fmt.Sprintf("static: there is no file %q", name))
	}
	return url
}

// File returns the content and the Content-Type of a static file. The parameter "url" must be a
// path that the function URL has returned. For any other path, the result "ok" is false.
func File(url string) (body []byte, kind string, ok bool) {
	f, ok := load().byPath[url]
	return f.body, f.kind, ok
}

// read loads and hashes all files. In a style sheet, it replaces each url("...") with the path of
// the hashed file. Therefore it adds a style sheet only after the files to which the style sheet
// refers.
func read(fsys fs.FS) (files, error) {
	loaded := files{urls: map[string]string{}, byPath: map[string]file{}}
	var sheets []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case types[path.Ext(name)] == "":
			return fmt.Errorf("static: %s is of an unknown kind", name)
		case path.Ext(name) == ".css":
			sheets = append(sheets, name)
			return nil
		}
		return loaded.add(fsys, name)
	})
	if err != nil {
		return files{}, err
	}
	for len(sheets) > 0 {
		var later []string
		for _, name := range sheets {
			ready, err := loaded.addSheet(fsys, name)
			if err != nil {
				return files{}, err
			}
			if !ready {
				later = append(later, name)
			}
		}
		if len(later) == len(sheets) {
			return files{}, fmt.Errorf("static: %s refers to a style sheet that does not exist", later[0])
		}
		sheets = later
	}
	return loaded, nil
}

func (l files) add(fsys fs.FS, name string) error {
	body, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	l.put(name, body)
	return nil
}

func (l files) put(name string, body []byte) {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	url := Prefix + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	l.urls[name] = url
	l.byPath[url] = file{body, types[ext]}
}

// addSheet adds a style sheet. It returns false if the style sheet refers to a file that has not
// been added yet.
func (l files) addSheet(fsys fs.FS, name string) (bool, error) {
	raw, err := fs.ReadFile(fsys, name)
	if err != nil {
		return false, err
	}
	var out strings.Builder
	rest := string(raw)
	for {
		before, after, found := strings.Cut(rest, `url("`)
		out.WriteString(before)
		if !found {
			break
		}
		ref, tail, closed := strings.Cut(after, `")`)
		if !closed {
			return false, fmt.Errorf("static: %s has a url( that is not closed", name)
		}
		url, ok := l.urls[path.Join(path.Dir(name), ref)]
		if !ok {
			return false, nil
		}
		// the path is relative, because dlo may be served below a base path
		out.WriteString(`url("` + path.Join(path.Dir(ref), path.Base(url)) + `")`)
		rest = tail
	}
	l.put(name, []byte(out.String()))
	return true, nil
}
