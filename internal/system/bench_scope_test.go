package system

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestBenchScope measures how much time the scope of a grant costs with 55,000 letters. It requests
// the same pages with three grants: for all 38 queues, for globs that match all of these queues,
// and for 10 of them. The first two grants read the same letters, so the difference between them is
// the cost of the scope.
func TestBenchScope(t *testing.T) {
	testenv.Bench(t)
	_, broker := testenv.PrivateBroker(t).VHost(t)
	p := newChild(t, broker, "default: {retry: {delays: []}}\nsearch: {fields: [id]}\nauth: {tokens: true}\n")
	fillPages(t, p.store)
	s, err := store.Open(t.Context(), p.store, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var secrets []string
	for i, places := range []deadletter.Places{{}, {Queues: []string{"q*"}}, {Queues: []string{"queue-0*"}}} {
		secret := deadletter.NewSecret()
		token := deadletter.APIToken{
			Name:      []string{"whole", "all", "ten"}[i],
			CreatedBy: "bench",
			Grant:     deadletter.Grant{Role: deadletter.RoleReader, Places: places},
		}
		if _, err := s.AddToken(t.Context(), token, deadletter.SecretHash(secret)); err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, secret)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	p.Start("")
	eventually(t, "all letters indexed", func() bool { return p.count("unindexed", "") == 0 })
	ask := func(path, secret string, status int) (time.Duration, []byte) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		began := time.Now()
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status {
			t.Fatal(path, answer.StatusCode, err)
		}
		return time.Since(began), body
	}
	for _, path := range []string{
		"/api/v1/letters", "/api/v1/letters?q=timeout", "/api/v1/letters/count?q=state:dead",
		"/api/v1/letters/count?q=timeout", "/api/v1/letters/facets", "/api/v1/letters/histogram", "/api/v1/groups",
		"/api/v1/operations", "/api/v1/audit",
	} {
		took := make([][]time.Duration, len(secrets))
		for range 20 {
			for i, secret := range secrets {
				d, _ := ask(path, secret, http.StatusOK)
				took[i] = append(took[i], d)
			}
		}
		whole, all, ten := ms(percentile(took[0], 50)), ms(percentile(took[1], 50)), ms(percentile(took[2], 50))
		t.Logf(
			"%-40s p50: all queues %5.1f ms; by a glob %5.1f ms, %.2f times as long; 10 of 38 queues %5.1f ms, %.2f times as long",
			path, whole, all, all/whole, ten, ten/whole,
		)
	}

	// A letter that the grant hides is not found, like a letter that does not exist.
	_, body := ask("/api/v1/letters?q=queue:queue-20&limit=50", secrets[0], http.StatusOK)
	var page struct{ Letters []struct{ ID string } }
	if err := json.Unmarshal(body, &page); err != nil || len(page.Letters) != 50 {
		t.Fatal(len(page.Letters), err)
	}
	var hidden, missing []time.Duration
	for range 10 {
		random := deadletter.RandomBits(len(page.Letters))
		for i, l := range page.Letters {
			there, _ := ask("/api/v1/letters/"+l.ID, secrets[2], http.StatusNotFound)
			gone, _ := ask(
				"/api/v1/letters/"+string(deadletter.NewID(deadletter.SerialAt(time.Now()), uint64(random[i]))),
				secrets[2], http.StatusNotFound,
			)
			hidden, missing = append(hidden, there), append(missing, gone)
		}
	}
	for _, at := range []int{50, 90} {
		h, m := ms(percentile(hidden, at)), ms(percentile(missing, at))
		t.Logf("p%d: a hidden letter %.2f ms, a letter that does not exist %.2f ms, ratio %.2f", at, h, m, h/m)
	}
}
