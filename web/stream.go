package web

import (
	"net/http"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// exportPage is how many rows of a stream are read at a time.
const exportPage = 500

// stalled is how long a client may take none of a stream, or send none, before it is let go.
const stalled = 30 * time.Second

// stream is an answer of any length: its deadline moves with every part, so that only a client that
// has stopped is let go.
type stream struct {
	out     http.ResponseWriter
	control *http.ResponseController
}

// startStream sends the head of an answer that is a file.
func startStream(rw http.ResponseWriter, kind, name string) stream {
	h := rw.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	h.Set("Content-Security-Policy", bodyCSP)
	s := stream{rw, http.NewResponseController(rw)}
	s.control.SetReadDeadline(time.Time{}) // the request is read; its deadline would end the stream
	s.alive()
	return s
}

// alive moves the deadline. Not every writer has one; then the server's own holds.
func (s stream) alive() { s.control.SetWriteDeadline(time.Now().Add(stalled)) }

// Write sends a part in pieces, so that a slow client may take as long as it needs.
func (s stream) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		var written int
		s.alive()
		written, err = s.out.Write(b[:min(len(b), piece)])
		n, b = n+written, b[written:]
	}
	return n, err
}

const piece = 64 << 10 // bytes

// flush sends what was written, and says whether the client is still there.
func (s stream) flush() bool {
	err := s.control.Flush()
	s.alive()
	return err == nil
}

// abort ends a stream that cannot be completed so that its reader notices: the connection breaks
// instead of ending well.
func (w *Web) abort(r *http.Request, err error) {
	if r.Context().Err() == nil {
		w.Log.Error("a stream was broken off", "path", deadletter.Visible(r.URL.Path), "err", err)
	}
	panic(http.ErrAbortHandler)
}
