package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// writeImages writes an archive for the image of dlo, and one for the image of the demo. The latter
// is that of dlo with a second layer, so that the image of dlo has no program that fills a broker.
func (r *release) writeImages() error {
	const volume = "/var/lib/dlo"
	config := v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Entrypoint:   []string{"/usr/bin/dlo"},
		Cmd:          []string{"serve"},
		Env:          []string{"DLO_STORE=" + volume + "/dlo.db", "HOME=" + volume},
		WorkingDir:   volume,
		Volumes:      map[string]struct{}{volume: {}},
		ExposedPorts: map[string]struct{}{"8672/tcp": {}},
		// OCI has no health check. Docker reads this one, and Podman does not.
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "/usr/bin/dlo", "health"}, Interval: 30 * time.Second, Timeout: 10 * time.Second,
			StartPeriod: time.Minute, Retries: 3,
		},
	}
	config.Labels = map[string]string{
		"org.opencontainers.image.title":       "dlo",
		"org.opencontainers.image.description": "Dead letters of RabbitMQ: stored, retried and shown",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.commit,
		"org.opencontainers.image.created":     r.time.Format(time.RFC3339),
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	dlo, demo := map[string]v1.Image{}, map[string]v1.Image{}
	for goarch, program := range r.dlo["linux"] {
		base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		image, err := r.addLayer(base, []entry{
			{name: "etc/", mode: 0o755},
			{name: "etc/passwd", mode: 0o644, text: fmt.Appendf(nil, "dlo:x:%d:%d:dlo:%s:/\n", user, user, volume)},
			{name: "etc/group", mode: 0o644, text: fmt.Appendf(nil, "dlo:x:%d:\n", user)},
			{name: "usr/", mode: 0o755},
			{name: "usr/bin/", mode: 0o755},
			{name: "usr/bin/dlo", from: program, mode: 0o755},
			{name: "var/", mode: 0o755},
			{name: "var/lib/", mode: 0o755},
			{name: "var/lib/dlo/", mode: 0o700, owner: user},
		})
		if err != nil {
			return err
		}
		if dlo[goarch], err = r.configure(image, config, goarch); err != nil {
			return err
		}
		if demo[goarch], err = r.addDemo(dlo[goarch], goarch); err != nil {
			return err
		}
	}
	return errors.Join(r.writeImage(dlo, "dlo"), r.writeImage(demo, "dlo-demo"))
}

// demoFolder has the configuration and the schemas of the demo.
const demoFolder = "usr/share/dlo-demo/"

// addDemo adds the demo to the image of dlo.
func (r *release) addDemo(dlo v1.Image, goarch string) (v1.Image, error) {
	program := filepath.Join(r.stage, "demo-"+goarch)
	if err := r.build(program, "./cmd/demo", "linux", goarch); err != nil {
		return nil, err
	}
	entries := []entry{
		{name: "tmp/", mode: 0o1777},
		{name: "usr/bin/demo", from: program, mode: 0o755},
		{name: "usr/share/", mode: 0o755},
		{name: demoFolder, mode: 0o755},
		{name: demoFolder + "dlo.yaml", from: root + "/cmd/demo/dlo.yaml", mode: 0o644},
	}
	schemas := root + "/cmd/demo/"
	err := filepath.WalkDir(schemas+"schemas", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		e := entry{name: demoFolder + filepath.ToSlash(strings.TrimPrefix(path, schemas)), from: path, mode: 0o644}
		if d.IsDir() {
			e.name, e.from, e.mode = e.name+"/", "", 0o755
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r.addLayer(dlo, entries)
}

// addLayer adds a layer to an image.
func (r *release) addLayer(base v1.Image, entries []entry) (v1.Image, error) {
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
	return mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "make release"},
	})
}

// configure gives an image its configuration.
func (r *release) configure(image v1.Image, config v1.Config, goarch string) (v1.Image, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = "linux", goarch, v1.Time{Time: r.time}, config
	return mutate.ConfigFile(image, file)
}

// writeImage writes an archive with the OCI layout of an image for all architectures. It needs no
// daemon.
func (r *release) writeImage(images map[string]v1.Image, name string) error {
	if len(images) == 0 {
		return nil
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, goarch := range slices.Sorted(maps.Keys(images)) {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        images[goarch],
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: goarch}},
		})
	}
	folder := filepath.Join(r.stage, name+"-image")
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	tagged := name + ":" + imageTag(r.version)
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tagged, // the name after `podman load`
		"io.containerd.image.name":          "docker.io/library/" + tagged,
	})); err != nil {
		return err
	}
	return r.packLayout(folder, name+"-"+r.version+"-image.tar")
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
