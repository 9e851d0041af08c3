package web

import (
	"net/http"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// exportPage is the number of rows that an export reads at a time.
const exportPage = 500

// stalled is the time after which a client is disconnected if it has read or sent nothing.
const stalled = 30 * time.Second

// stream is a response of any length. Each part that is written extends its deadline, so only a
// client that stops reading is disconnected.
type stream struct {
	out     http.ResponseWriter
	control *http.ResponseController
}

// startStream sends the headers of a response that is downloaded as a file.
func startStream(rw http.ResponseWriter, kind, name string) stream {
	h := rw.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	h.Set("Content-Security-Policy", bodyCSP)
	s := stream{rw, http.NewResponseController(rw)}
	s.control.SetReadDeadline(time.Time{}) // the request has been read; a read deadline would end the stream
	s.extendDeadline()
	return s
}

// extendDeadline extends the deadline for writing. If the writer does not support deadlines, the
// deadline of the server applies.
func (s stream) extendDeadline() { s.control.SetWriteDeadline(time.Now().Add(stalled)) }

// Write sends b in pieces and extends the deadline for each piece. So a slow client can take as
// long as it needs.
func (s stream) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		var written int
		s.extendDeadline()
		written, err = s.out.Write(b[:min(len(b), piece)])
		n, b = n+written, b[written:]
	}
	return n, err
}

const piece = 64 << 10 // the size of a piece in bytes

// flush sends the data that was written so far. It reports whether the client is still connected.
func (s stream) flush() bool {
	err := s.control.Flush()
	s.extendDeadline()
	return err == nil
}

// abort ends a response that cannot be completed. It closes the connection, so that the client
// notices that the response is incomplete.
func (w *Web) abort(r *http.Request, err error) {
	if r.Context().Err() == nil {
		w.Log.Error("a stream was broken off", "path", deadletter.Visible(r.URL.Path), "err", err)
	}
	panic(http.ErrAbortHandler)
}
