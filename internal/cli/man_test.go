package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

func TestTheManualIsWellFormed(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	var out strings.Builder
	if err := Run(Program{
		Ctx: t.Context(), Getenv: os.Getenv, Stdin: nil, Stdout: &out, Stderr: &out, Version: "test", Check: nil,
	}, &struct{}{}, []string{"man"}); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{
		".TH DLO 1", `.SS "dlo letters requeue [<ids> ...] [flags]"`, `\-\-canary\-wait`,
		`.SS "dlo queues pause <queue> [flags]"`, `.SS "dlo groups resume <group> [flags]"`, ".SH EXIT STATUS",
		"header.x\\-tenant:48213",
	} {
		if !strings.Contains(out.String(), wanted) {
			t.Errorf("%s is missing", wanted)
		}
	}
	if _, err := exec.LookPath("groff"); err != nil {
		testenv.Unavailable(t, fmt.Errorf("groff: %w: apt-get install groff-base", testenv.ErrMissing))
	}
	render := exec.Command("groff", "-man", "-ww", "-Tutf8")
	render.Stdin = strings.NewReader(out.String())
	var said strings.Builder
	render.Stderr = &said
	text, err := render.Output()
	if err != nil || said.Len() > 0 || !strings.Contains(string(text), "another dlo holds the store") {
		t.Errorf("%v: %s", err, said.String())
	}
}
