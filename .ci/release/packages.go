package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// writePackages writes a .deb and a .rpm for each architecture of Linux.
func (r *release) writePackages() error {
	for goarch, dlo := range r.dlo["linux"] {
		for _, format := range []string{"deb", "rpm"} {
			packager, err := nfpm.Get(format)
			if err != nil {
				return err
			}
			info := nfpm.WithDefaults(r.describe(goarch, dlo))
			if err := nfpm.PrepareForPackager(info, format); err != nil {
				return err
			}
			f, err := os.Create(r.file(packager.ConventionalFileName(info)))
			if err != nil {
				return err
			}
			err = packager.Package(info, f)
			if closed := f.Close(); err == nil {
				err = closed
			}
			if err != nil {
				return fmt.Errorf("%s for %s: %w", format, goarch, err)
			}
		}
	}
	return nil
}

// describe returns what the packages of an architecture contain.
func (r *release) describe(goarch, dlo string) *nfpm.Info {
	info := &nfpm.Info{
		Name:        "dlo",
		Arch:        goarch,
		Platform:    "linux",
		Version:     r.version,
		Section:     "net",
		Priority:    "optional",
		Maintainer:  "Dead Letter Office <deadletteroffice@users.noreply.github.com>",
		Homepage:    "https://github.com/deadletteroffice/dlo",
		Description: "Dead letters of RabbitMQ: stored, retried and shown\nTakes over every message that a RabbitMQ consumer gave up on.",
		License:     "Apache-2.0",
		MTime:       r.time,
	}
	add := func(from, to, kind string, mode os.FileMode) {
		info.Contents = append(info.Contents, &files.Content{
			Source: from, Destination: to, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.time},
		})
	}
	add(dlo, "/usr/bin/dlo", "", 0o755)
	add("dlo.service", "/usr/lib/systemd/system/dlo.service", "", 0o644)
	add("dlo.yaml", "/etc/dlo/dlo.yaml", files.TypeConfigNoReplace, 0o644)
	add("dlo.env", "/etc/dlo/dlo.env", files.TypeConfigNoReplace, 0o600)
	add(filepath.Join(r.stage, "dlo.1.gz"), "/usr/share/man/man1/dlo.1.gz", "", 0o644)
	for shell, to := range completions {
		add(filepath.Join(r.stage, "dlo."+shell), to, "", 0o644)
	}
	add(root+"/LICENSE", "/usr/share/doc/dlo/copyright", "", 0o644)
	for _, name := range []string{"dlo.yaml", "dlo.schema.json"} {
		add(root+"/docs/examples/"+name, "/usr/share/doc/dlo/examples/"+name, "", 0o644)
	}
	info.Scripts = nfpm.Scripts{PostInstall: "after-install.sh", PreRemove: "before-remove.sh"}
	info.Deb.Compression = "gzip"
	info.RPM.Compression = "gzip"
	info.RPM.BuildHost = "localhost"
	return info
}
