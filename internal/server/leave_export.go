package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/web"
)

// exportLetters writes all letters of a store to a new file, as GET /letters/export does. The file
// includes the values that are masked elsewhere. The command `dlo letters import` can read it.
func exportLetters(ctx context.Context, s *store.Store, path string) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return wrong("--export: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
			os.Remove(path)
		}
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/v1/letters/export?reveal=1", nil)
	if err != nil {
		return err
	}
	defer func() {
		if recover() != nil { // the handler panics if it cannot complete the stream
			err = errors.New("the letters could not all be read; nothing was changed")
		}
	}()
	answer := &answerFile{file: file, header: http.Header{}}
	web.New(web.Options{Store: s}).ServeHTTP(answer, r)
	if answer.failed != nil {
		return fmt.Errorf("--export: %w", answer.failed)
	}
	if answer.code >= http.StatusMultipleChoices {
		return fmt.Errorf("--export: %s", http.StatusText(answer.code))
	}
	return nil
}

// answerFile is a http.ResponseWriter that writes the response to a file.
type answerFile struct {
	file   *os.File
	header http.Header
	code   int
	failed error // error of the last write
}

func (a *answerFile) Header() http.Header  { return a.header }
func (a *answerFile) WriteHeader(code int) { a.code = code }
func (a *answerFile) Flush()               {}

func (a *answerFile) Write(b []byte) (int, error) {
	n, err := a.file.Write(b)
	if err != nil {
		a.failed = err
	}
	return n, err
}
