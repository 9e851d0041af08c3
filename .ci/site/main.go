// Command site checks every link and image in a folder of HTML files: the target has to be a file
// in that folder, with an element of that name. Links to other hosts are not followed, and files
// from other hosts are not allowed.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/html"
)

// page holds the links of a file and the names of its elements.
type page struct {
	links, assets []string
	names         map[string]bool
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	pages := map[string]page{}
	if err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".html" {
			pages[path], err = read(path)
		}
		return err
	}); err != nil {
		return err
	}
	var wrong []error
	followed := 0
	for path, p := range pages {
		for i, link := range append(p.assets, p.links...) {
			to, err := url.Parse(link)
			if err != nil || (to.Host != "" || to.Scheme != "") && i < len(p.assets) {
				wrong = append(wrong, fmt.Errorf("%s: %s is not a file of the site", path, link))
			}
			if err != nil || to.Host != "" || to.Scheme != "" {
				continue
			}
			followed++
			target := path
			if to.Path != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(to.Path))
			}
			if _, err := os.Stat(target); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: there is no %s", path, link))
			} else if to.Fragment != "" && filepath.Ext(target) == ".html" && !pages[target].names[to.Fragment] {
				wrong = append(wrong, fmt.Errorf("%s: %s has no heading of that name", path, link))
			}
		}
	}
	fmt.Printf("%d pages, %d links\n", len(pages), followed)
	return errors.Join(wrong...)
}

func read(path string) (page, error) {
	f, err := os.Open(path)
	if err != nil {
		return page{}, err
	}
	defer f.Close()
	root, err := html.Parse(f)
	if err != nil {
		return page{}, err
	}
	p := page{names: map[string]bool{}}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				p.names[a.Val] = true
			case a.Key == "href" && n.Data == "a":
				p.links = append(p.links, a.Val)
			case (a.Key == "src" || a.Key == "href") && !strings.HasPrefix(a.Val, "data:"):
				p.assets = append(p.assets, a.Val)
			}
		}
	}
	return p, nil
}
