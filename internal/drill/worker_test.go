package drill

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// TestARepairedWorkerRejectsNoMore calls the method "repair" at a time when the worker is sending a
// request that rejects messages. The method must wait until this request has ended. Otherwise the
// request could reject letters that are requeued after the repair.
func TestARepairedWorkerRejectsNoMore(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	happened := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	began, end := make(chan struct{}), make(chan struct{})
	api := &recorder{}
	api.on = func(_, _ string, body, _ any) error {
		if body.(map[string]any)["ackmode"] == "reject_requeue_false" {
			close(began)
			<-end
			happened("rejected")
		}
		return nil
	}
	const name = "dlo-drill-abcdefghij"
	g := &ground{site: &site{fence: &fence{api: api, vhost: name}, name: name}, workers: map[string]*worker{}}
	w := g.startWorker("work")
	defer w.stop()
	<-began
	repaired := make(chan struct{})
	go func() {
		g.repair("work")
		happened("repaired")
		close(repaired)
	}()
	time.Sleep(20 * time.Millisecond) // a repair that does not wait would be done by now
	close(end)
	<-repaired
	if want := []string{"rejected", "repaired"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}
