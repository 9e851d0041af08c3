// Command release builds the files of a release in the folder dist: archives, packages for Debian
// and RPM systems, an OCI image, a Helm chart, a compose file, an SBOM and checksums.
// `make release` runs it. Two runs on the same commit write the same bytes, wherever and whenever
// they run. All times in the files are the time of the commit.
package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is one run of the command.
type release struct {
	version string    // for example "1.2.3"
	linked  string    // the flags for the linker, which set the version and the commit in dlo
	time    time.Time // of the commit
	commit  string
	dist    string
	stage   string                       // folder for files that go into others
	dlo     map[string]map[string]string // GOOS -> GOARCH -> the path of the program
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// root is the folder of the repository. The command runs in .ci/release.
const root = "../.."

func run(args []string) error {
	if len(args) < 3 {
		return errors.New("usage: release VERSION LDFLAGS GOOS/GOARCH...")
	}
	r := &release{
		version: version(args[0]), linked: args[1], dist: filepath.Join(root, "dist"),
		dlo: map[string]map[string]string{},
	}
	stamp, err := output("git", "log", "-1", "--format=%ct %H")
	if err != nil {
		return err
	}
	var seconds int64
	if _, err := fmt.Sscan(stamp, &seconds, &r.commit); err != nil {
		return fmt.Errorf("the time of the commit: %w", err)
	}
	r.time = time.Unix(seconds, 0).UTC()
	// nfpm and cyclonedx-gomod read it
	if err := os.Setenv("SOURCE_DATE_EPOCH", strconv.FormatInt(seconds, 10)); err != nil {
		return err
	}
	if r.stage, err = os.MkdirTemp("", "dlo-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.stage)
	if err := errors.Join(os.RemoveAll(r.dist), os.Mkdir(r.dist, 0o755)); err != nil {
		return err
	}
	for _, target := range args[2:] {
		goos, goarch, _ := strings.Cut(target, "/")
		if err := r.compile(goos, goarch); err != nil {
			return err
		}
	}
	for _, step := range []func() error{
		r.writeTexts, r.writeArchives, r.writePackages, r.writeImages, r.writeChart, r.writeCompose, r.writeSBOM,
		r.writeChecksums,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

var (
	numbered = regexp.MustCompile(`^\d+\.\d+\.\d+($|-)`)
	after    = regexp.MustCompile(`(?:-(\d+)-(g[0-9a-f]+))?(-dirty)?$`) // what git adds to a tag
)

// version returns the semantic version of what `git describe` says. A build some commits after a
// tag is newer than the tag for dpkg and rpm, and older than the next tag: v1.2.3-4-gabc is
// 1.2.3+4.gabc.
func version(described string) string {
	v := strings.TrimPrefix(described, "v")
	if !numbered.MatchString(v) {
		return "0.0.0-g" + v // no tag yet; packages and charts need a number
	}
	m := after.FindStringSubmatch(v)
	parts := slices.DeleteFunc([]string{m[1], m[2], strings.TrimPrefix(m[3], "-")}, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return v
	}
	return strings.TrimSuffix(v, m[0]) + "+" + strings.Join(parts, ".")
}

// imageTag returns the tag of an image. A tag cannot contain a plus sign.
func imageTag(version string) string { return strings.ReplaceAll(version, "+", "-") }

// compile builds dlo for a platform.
func (r *release) compile(goos, goarch string) error {
	path := filepath.Join(r.stage, goos+"-"+goarch, "dlo")
	if goos == "windows" {
		path += ".exe"
	}
	if r.dlo[goos] == nil {
		r.dlo[goos] = map[string]string{}
	}
	r.dlo[goos][goarch] = path
	return r.build(path, "./cmd/dlo", goos, goarch)
}

func (r *release) build(path, program, goos, goarch string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", r.linked, "-o", path, program)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOOS="+goos, "GOARCH="+goarch)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s for %s/%s: %w", program, goos, goarch, err)
	}
	return nil
}

// completions maps each shell to the folder in which packages put its completion, with the name of
// the file.
var completions = map[string]string{
	"bash": "/usr/share/bash-completion/completions/dlo",
	"zsh":  "/usr/share/zsh/vendor-completions/_dlo",
	"fish": "/usr/share/fish/vendor_completions.d/dlo.fish",
}

// writeTexts lets dlo write its manual page and its completions into the stage.
func (r *release) writeTexts() error {
	dlo := r.dlo[runtime.GOOS][runtime.GOARCH]
	if dlo == "" {
		dlo = filepath.Join(r.stage, "dlo")
		if err := r.build(dlo, "./cmd/dlo", runtime.GOOS, runtime.GOARCH); err != nil {
			return err
		}
	}
	texts := map[string][]string{"dlo.1": {"man"}}
	for shell := range completions {
		texts["dlo."+shell] = []string{"completion", shell}
	}
	for name, args := range texts {
		text, err := output(dlo, args...)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.stage, name), []byte(text), 0o644); err != nil {
			return err
		}
		if name == "dlo.1" {
			err = writeGzip(filepath.Join(r.stage, name+".gz"), []byte(text)) // for the packages
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeSBOM lists the modules in dlo, with their licences. The same modules are in the dlo of every
// platform with a server.
func (r *release) writeSBOM() error {
	dlo := r.dlo["linux"]["amd64"]
	if dlo == "" {
		return nil
	}
	path := r.file("dlo-" + r.version + "-sbom.cdx.json")
	if err := command(
		"env", "GOFLAGS=-trimpath", // the SBOM has the checksum of the tool
		"go", "tool", "cyclonedx-gomod", "bin", "-json", "-noserial", "-licenses", "-std", "-version", "v"+r.version,
		"-output", path, dlo,
	); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text = regexp.MustCompile(`"timestamp": "[^"]*"`).
		ReplaceAll(text, fmt.Appendf(nil, `"timestamp": %q`, r.time.Format(time.RFC3339)))
	return os.WriteFile(path, text, 0o644)
}

func (r *release) writeChecksums() error {
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		f, err := os.Open(r.file(e.Name()))
		if err != nil {
			return err
		}
		h := sha256.New()
		n, err := io.Copy(h, f)
		f.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", h.Sum(nil), e.Name())
		fmt.Printf("%7.1f MB  dist/%s\n", float64(n)/1e6, e.Name())
	}
	return os.WriteFile(r.file("SHA256SUMS"), []byte(sums.String()), 0o644)
}

func (r *release) file(name string) string { return filepath.Join(r.dist, name) }

func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}

func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
