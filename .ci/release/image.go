package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the user in the image. It owns nothing but the volume.
const user = 65532

// writeImage writes an archive with the OCI layout of an image for all architectures. It needs no
// daemon.
func (r *release) writeImage() error {
	const volume = "/var/lib/dlo"
	config := v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Entrypoint:   []string{"/usr/bin/dlo"},
		Cmd:          []string{"serve"},
		Env:          []string{"DLO_STORE=" + volume + "/dlo.db", "HOME=" + volume},
		WorkingDir:   volume,
		Volumes:      map[string]struct{}{volume: {}},
		ExposedPorts: map[string]struct{}{"8672/tcp": {}},
	}
	config.Labels = map[string]string{
		"org.opencontainers.image.title":       "dlo",
		"org.opencontainers.image.description": "Dead letters of RabbitMQ: stored, retried and shown",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.commit,
		"org.opencontainers.image.created":     r.time.Format(time.RFC3339),
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, goarch := range slices.Sorted(maps.Keys(r.dlo["linux"])) {
		image, err := r.image(config, goarch, []entry{
			{name: "etc/", mode: 0o755},
			{name: "etc/passwd", mode: 0o644, text: fmt.Appendf(nil, "dlo:x:%d:%d:dlo:%s:/\n", user, user, volume)},
			{name: "etc/group", mode: 0o644, text: fmt.Appendf(nil, "dlo:x:%d:\n", user)},
			{name: "usr/", mode: 0o755},
			{name: "usr/bin/", mode: 0o755},
			{name: "usr/bin/dlo", from: r.dlo["linux"][goarch], mode: 0o755},
			{name: "var/", mode: 0o755},
			{name: "var/lib/", mode: 0o755},
			{name: "var/lib/dlo/", mode: 0o700, owner: user},
		})
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: goarch}},
		})
	}
	folder := filepath.Join(r.stage, "image")
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": "dlo:" + r.version, // the name after `podman load`
		"io.containerd.image.name":          "docker.io/library/" + "dlo:" + r.version,
	})); err != nil {
		return err
	}
	return r.packLayout(folder, "dlo-"+r.version+"-image.tar")
}

// image returns the image of one architecture, with a single layer.
func (r *release) image(config v1.Config, goarch string, entries []entry) (v1.Image, error) {
	content, err := r.writeTar(entries)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer),
	)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "make release"},
	})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = "linux", goarch, v1.Time{Time: r.time}, config
	return mutate.ConfigFile(image, file)
}

// packLayout packs a folder with an OCI layout.
func (r *release) packLayout(folder, name string) error {
	var entries []entry
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(folder, path)
		entries = append(entries, entry{name: filepath.ToSlash(inside), from: path, mode: 0o644})
		return err
	})
	if err != nil {
		return err
	}
	content, err := r.writeTar(entries)
	if err != nil {
		return err
	}
	return os.WriteFile(r.file(name), content, 0o644)
}
