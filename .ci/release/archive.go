package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// entry is one file or folder of an archive.
type entry struct {
	name  string // ends in / for a folder
	from  string // path of the file with the content; "" = the text is the content
	text  []byte
	mode  int64
	owner int
}

// writeTar returns an archive in which everything except the content is the same on every machine.
func (r *release) writeTar(entries []entry) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{
			Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, ModTime: r.time, Typeflag: tar.TypeReg,
			Format: tar.FormatPAX,
		}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		} else if e.from != "" {
			var err error
			if e.text, err = os.ReadFile(e.from); err != nil {
				return nil, err
			}
		}
		h.Size = int64(len(e.text))
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.text); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func (r *release) writeTarGz(name string, entries []entry) error {
	content, err := r.writeTar(entries)
	if err != nil {
		return err
	}
	return writeGzip(r.file(name), content)
}

func writeGzip(path string, content []byte) error {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// writeArchives writes one archive for each platform.
func (r *release) writeArchives() error {
	for goos, list := range r.dlo {
		for goarch, dlo := range list {
			name := fmt.Sprintf("dlo-%s-%s-%s", r.version, goos, goarch)
			entries := []entry{
				{name: name + "/", mode: 0o755},
				{name: name + "/" + filepath.Base(dlo), from: dlo, mode: 0o755},
				{name: name + "/LICENSE", from: root + "/LICENSE", mode: 0o644},
				{name: name + "/dlo.example.yaml", from: root + "/docs/examples/dlo.yaml", mode: 0o644},
				{name: name + "/dlo.schema.json", from: root + "/docs/examples/dlo.schema.json", mode: 0o644},
			}
			for _, text := range []string{"dlo.1", "dlo.bash", "dlo.fish", "dlo.zsh"} {
				entries = append(entries, entry{name: name + "/" + text, from: filepath.Join(r.stage, text), mode: 0o644})
			}
			if err := r.writeTarGz(name+".tar.gz", entries); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeChart packs the folder chart, as `helm package` does, with the version of the release.
func (r *release) writeChart() error {
	var entries []entry
	err := filepath.WalkDir("chart", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if filepath.Base(path) == "Chart.yaml" {
			text = bytes.ReplaceAll(text, []byte("0.0.0"), []byte(r.version))
		}
		entries = append(entries, entry{name: "dlo" + strings.TrimPrefix(path, "chart"), text: text, mode: 0o644})
		return err
	})
	if err != nil {
		return err
	}
	return r.writeTarGz("dlo-"+r.version+"-chart.tgz", entries)
}

// writeCompose writes the compose file with the version of the release.
func (r *release) writeCompose() error {
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte("dlo-demo:0.0.0"), []byte("dlo-demo:"+imageTag(r.version)))
	text = bytes.ReplaceAll(text, []byte("-0.0.0-"), []byte("-"+r.version+"-"))
	return os.WriteFile(r.file("dlo-"+r.version+"-compose.yaml"), text, 0o644)
}
