package cli

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"
	"testing/fstest"
)

// TestADirectoryOfSchemas checks which files of a directory are sent.
func TestADirectoryOfSchemas(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{}
	for _, name := range []string{
		"buf.work.yaml", "proto/buf.yaml", "proto/a.proto", "set.binpb", "old/set.pb.gz", // these are
		"README.md", "buf.gen.yaml", "logs.gz", ".git/a.proto", "set.zip",
	} {
		files[name] = &fstest.MapFile{}
	}
	b, err := zipDirectory(files)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	for _, f := range z.File {
		sent = append(sent, f.Name)
	}
	if got := strings.Join(sent, " "); got != "buf.work.yaml old/set.pb.gz proto/a.proto proto/buf.yaml set.binpb" {
		t.Errorf("sent: %s", got)
	}
}
