package web_test

import (
	"net/url"
	"testing"
)

func TestControlOfAnOperation(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := string(h.receive("sms", 2, "x")[0])
	h.post("/operations", url.Values{"action": {"requeue"}, "id": {id}, "key": {"k"}}).to(t, "/operations/O-1")
	h.post("/operations/O-1/pause", nil).to(t, "/operations/O-1")
	h.get("/operations/O-1").want(t, 200, "Paused", "Resume")
	h.post("/operations/O-1/rate", url.Values{"rate": {"fast"}}).want(t, 400, `value="fast" aria-invalid="true"`, "a rate is a number")
	h.post("/operations/O-1/rate", url.Values{"rate": {"0"}}).want(t, 400, "rate is above 0")
	h.post("/operations/O-1/rate", url.Values{"rate": {"7.5"}}).to(t, "/operations/O-1")
	h.get("/operations/O-1").want(t, 200, "7.5/s")
	h.post("/operations/O-1/resume", nil).to(t, "/operations/O-1")
	h.post("/operations/O-1/resume", nil).want(t, 409)
	h.post("/operations/O-9/pause", nil).want(t, 404)
	h.get("/operations/O-1?result=pending").want(t, 200, `aria-current="page"`, "To go")
	h.get("/operations/O-1?result=twice").want(t, 200, "Perhaps sent twice", "None.")
	h.get("/operations/O-1?result=nonsense&after=!").want(t, 400)
}
