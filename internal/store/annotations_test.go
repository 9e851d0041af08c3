package store_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/google/go-cmp/cmp"
)

// judge classifies received letters as the classifier does. If there is an annotation for a letter,
// judge uses it. Otherwise the letter waits for an annotation.
func judge(t testing.TB, s *store.Store) {
	t.Helper()
	ctx := context.Background()
	letters, err := s.NextReceived(ctx, 500)
	if err != nil || len(letters) == 0 {
		t.Fatal(len(letters), err)
	}
	found, err := s.Annotations(ctx, letters)
	if err != nil {
		t.Fatal(err)
	}
	verdict(t, s, letters, found)
}

func verdict(
	t testing.TB, s *store.Store, letters []deadletter.Letter, found map[deadletter.ID][]deadletter.Annotation,
) {
	t.Helper()
	var verdicts []deadletter.Classified
	taken := map[int64]bool{}
	for _, l := range letters {
		_, origin := deadletter.ReadDeaths(l.Arrived.Headers, deadletter.OwnQueue)
		origin.Broker, origin.VHost = l.Broker, l.VHost
		v := deadletter.Classified{
			Letter:       l.ID,
			To:           deadletter.ClassifiedDead,
			Origin:       origin,
			GroupKey:     [32]byte{1},
			GroupTitle:   "g",
			GroupVersion: 1,
			Severity:     deadletter.SeverityDigest,
			Unexplained:  l.DeathKeys(),
		}
		for _, a := range found[l.ID] {
			if a.Fits(l.DeathKeys(), origin) && (a.Many() || !taken[a.ID]) {
				v.Annotation, v.Error, v.Unexplained, taken[a.ID] = a.ID, a.Message, deadletter.DeathKeys{}, true
				break
			}
		}
		verdicts = append(verdicts, v)
	}
	if err := s.Classify(context.Background(), verdicts); err != nil {
		t.Fatal(err)
	}
}

// readReported reads the listed letters again, as the reader does.
func readReported(t testing.TB, s *store.Store) int {
	t.Helper()
	letters, err := s.NextUnread(context.Background(), 500)
	if err != nil {
		t.Fatal(err)
	}
	var list []deadletter.Read
	for _, l := range letters {
		text := l.Error
		if l.Annotation != nil {
			text = l.Annotation.Message
		}
		list = append(list, deadletter.Read{
			AsOf: l.ChangedAt,
			Classified: deadletter.Classified{
				Letter: l.ID, Error: text, GroupKey: sha256.Sum256([]byte(text)), GroupTitle: text, GroupVersion: 1,
			},
		})
	}
	if err := s.Read(context.Background(), list); err != nil {
		t.Fatal(err)
	}
	return len(letters)
}

func annotate(t testing.TB, s *store.Store, list ...deadletter.Annotation) deadletter.Annotated {
	t.Helper()
	for i := range list {
		list[i].Broker, list[i].VHost, list[i].By = "main", "/", "worker 1"
	}
	sum, err := s.Annotate(context.Background(), list)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// saidOf returns the error of a letter and the message that its consumer reported, with | in
// between.
func saidOf(t testing.TB, s *store.Store, id deadletter.ID) string {
	t.Helper()
	l := letter(t, s, id)
	if l.Annotation == nil {
		return l.Error + "|"
	}
	return l.Error + "|" + l.Annotation.Message
}

func kinds(t testing.TB, s *store.Store, id deadletter.ID) []string {
	t.Helper()
	history, err := s.History(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range history {
		list = append(list, e.Kind)
	}
	return list
}

func sha(body []byte) []byte {
	sum := sha256.Sum256(body)
	return sum[:]
}

func TestAnAnnotationMeetsItsLetterWhicheverComesFirst(t *testing.T) {
	t.Parallel()
	w := window(t, 1, "sms", 1)
	for _, c := range []struct {
		name string
		a    deadletter.Annotation
		fits bool
	}{
		{"by message id", deadletter.Annotation{MessageID: "m-1-0"}, true},
		{"by message id and queue", deadletter.Annotation{MessageID: "m-1-0", Queue: "sms"}, true},
		{
			"by all of the delivery",
			deadletter.Annotation{
				MessageID: "m-1-0", Queue: "sms", Exchange: "events", RoutingKey: "k", Body: sha(w.Arrivals[0].Body),
			},
			true,
		},
		{"by body", deadletter.Annotation{Body: sha(w.Arrivals[0].Body)}, true},
		{"another message", deadletter.Annotation{MessageID: "m-1-1"}, false},
		{"another queue", deadletter.Annotation{MessageID: "m-1-0", Queue: "email"}, false},
		{"another exchange", deadletter.Annotation{MessageID: "m-1-0", Exchange: "other"}, false},
		{"another routing key", deadletter.Annotation{MessageID: "m-1-0", RoutingKey: "l"}, false},
		{"another body", deadletter.Annotation{MessageID: "m-1-0", Body: sha([]byte("x"))}, false},
		{"a token that it has not", deadletter.Annotation{MessageID: "m-1-0", Token: "t"}, false},
	} {
		want, events := "|", "received, dead"
		if c.fits {
			want, events = "no route|no route", "received, dead, annotated"
		}
		c.a.Message, c.a.Stack, c.a.ErrorType, c.a.Service, c.a.Version = "no route", "at x", "E", "worker", "1"
		t.Run(c.name+", the annotation first", func(t *testing.T) {
			t.Parallel()
			s, _ := open(t)
			if sum := annotate(t, s, c.a); sum != (deadletter.Annotated{New: 1}) {
				t.Errorf("%+v", sum)
			}
			id := receive(t, s, w).New[0]
			judge(t, s)
			if got := saidOf(t, s, id); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			if got := strings.Join(kinds(t, s, id), ", "); got != events {
				t.Error(got)
			}
		})
		t.Run(c.name+", the letter first", func(t *testing.T) {
			t.Parallel()
			s, _ := open(t)
			id := receive(t, s, w).New[0]
			judge(t, s)
			if sum := annotate(t, s, c.a); sum.Joined == 1 != c.fits {
				t.Errorf("%+v", sum)
			}
			if n := readReported(t, s); n == 1 != c.fits {
				t.Errorf("%d letters read again", n)
			}
			if got := saidOf(t, s, id); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			if got := strings.Join(kinds(t, s, id), ", "); got != events {
				t.Error(got)
			}
			if r := rereading(t, s); r != (deadletter.RereadProgress{}) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestAnAnnotationThatComesMidway checks an annotation that is stored after the classifier has
// looked for annotations, but before it records the verdict. When the verdict is recorded, the
// store must join the annotation to the letter.
func TestAnAnnotationThatComesMidway(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	letters, err := s.NextReceived(context.Background(), 10)
	if err != nil {
		t.Fatal(err)
	}
	annotate(t, s, deadletter.Annotation{MessageID: "m-1-0", Message: "no route"})
	verdict(t, s, letters, nil)
	readReported(t, s)
	if got := saidOf(t, s, id); got != "no route|no route" {
		t.Error(got)
	}
}

// TestAnAnnotationWhileTheLetterIsRead checks an annotation that arrives while dlo already reads
// its letter again. The result does not include the annotation. Therefore, this result must not be
// recorded, and the letter must be read once more.
func TestAnAnnotationWhileTheLetterIsRead(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	judge(t, s)
	if err := s.Reread(ctx, deadletter.Reread{Why: "a change"}); err != nil {
		t.Fatal(err)
	}
	stale := nextUnread(t, s, 10)
	annotate(t, s, deadletter.Annotation{MessageID: "m-1-0", Message: "no route"})
	recordRead(t, s, "", deadletter.ReadAsText, 9, stale...)
	if n := readReported(t, s); n != 1 {
		t.Errorf("%d letters are left to be read", n)
	}
	if got := saidOf(t, s, id); got != "no route|no route" {
		t.Error(got)
	}
}

func TestTheWindowOfAnAnnotation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{deadletter.AnnotationWindow - time.Second, "x|x"},
		{deadletter.AnnotationWindow + time.Second, "|"},
		{24 * time.Hour, "|"},
	} {
		s, clock := open(t)
		annotate(t, s, deadletter.Annotation{MessageID: "m-1-0", Message: "x"})
		clock.at = clock.at.Add(c.after)
		first := receive(t, s, window(t, 1, "sms", 1)).New[0]
		judge(t, s)
		if got := saidOf(t, s, first); got != c.want {
			t.Errorf("the annotation %s before: %q, want %q", c.after, got, c.want)
		}
		second := receive(t, s, window(t, 2, "sms", 1)).New[0]
		judge(t, s)
		clock.at = clock.at.Add(c.after)
		annotate(t, s, deadletter.Annotation{MessageID: "m-2-0", Message: "x"})
		readReported(t, s)
		if got := saidOf(t, s, second); got != c.want {
			t.Errorf("the annotation %s after: %q, want %q", c.after, got, c.want)
		}
		// Annotations that are too old are deleted. A letter keeps the failure that its annotation
		// described.
		clock.at = clock.at.Add(2 * deadletter.AnnotationWindow)
		if _, err := s.PruneAnnotations(context.Background()); err != nil {
			t.Fatal(err)
		}
		var annotations, keys int
		if err := s.Reader().QueryRow(`SELECT (SELECT count(*) FROM annotations), (SELECT count(*)
			FROM unexplained)`).Scan(&annotations, &keys); err != nil {
			t.Fatal(err)
		}
		joined := map[bool]int{true: 2}[c.want != "|"]
		if annotations != joined || keys != 0 || saidOf(t, s, first) != c.want {
			t.Errorf("after %s: %d annotations, %d keys, %q", c.after, annotations, keys, saidOf(t, s, first))
		}
	}
}

// twins returns a window with the same message from several queues, or from one queue several
// times.
func twins(t testing.TB, number int64, queues ...string) deadletter.Window {
	t.Helper()
	w := window(t, number, queues[0], len(queues))
	for i, queue := range queues {
		a := &w.Arrivals[i]
		*a = window(t, number, queue, 1).Arrivals[0]
		a.Tag = uint64(i + 1)
	}
	fillFingerprints(t, &w)
	return w
}

func TestSeveralLettersOfOneMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		queues []string
		said   []deadletter.Annotation
		want   []string // sorted
	}{
		{
			"two queues, one of them is named",
			[]string{"sms", "email"},
			[]deadletter.Annotation{{Queue: "email", Message: "x"}},
			[]string{"email x", "sms "},
		},
		{
			"two queues, none is named",
			[]string{"sms", "email"},
			[]deadletter.Annotation{{Message: "x"}},
			[]string{"email x", "sms x"},
		},
		{
			"two queues, each has its own",
			[]string{"sms", "email"},
			[]deadletter.Annotation{{Queue: "email", Message: "x"}, {Queue: "sms", Message: "y"}},
			[]string{"email x", "sms y"},
		},
		{
			"twice in one queue, each has its own",
			[]string{"sms", "sms"},
			[]deadletter.Annotation{{Queue: "sms", Message: "x"}, {Queue: "sms", Message: "y"}},
			[]string{"sms x", "sms y"},
		},
		{
			"twice in one queue, said twice alike",
			[]string{"sms", "sms"},
			[]deadletter.Annotation{{Queue: "sms", Message: "x"}, {Queue: "sms", Message: "x"}},
			[]string{"sms x", "sms x"},
		},
		{
			"twice in one queue, said of one",
			[]string{"sms", "sms"},
			[]deadletter.Annotation{{Queue: "sms", Message: "x"}},
			[]string{"sms ", "sms x"},
		},
	} {
		for _, first := range []string{"annotations", "letters", "one by one"} {
			t.Run(c.name+", "+first+" first", func(t *testing.T) {
				t.Parallel()
				s, clock := open(t)
				say := func() {
					for _, a := range c.said {
						a.MessageID = "m-1-0"
						annotate(t, s, a)
						clock.at = clock.at.Add(time.Second)
					}
				}
				var ids []deadletter.ID
				switch first {
				case "annotations":
					say()
					ids = receive(t, s, twins(t, 1, c.queues...)).New
					judge(t, s)
				case "letters":
					ids = receive(t, s, twins(t, 1, c.queues...)).New
					judge(t, s)
					say()
				default:
					for i, queue := range c.queues {
						ids = append(ids, receive(t, s, twins(t, 1, queue)).New...)
						judge(t, s)
						if i == 0 {
							say()
						}
					}
				}
				readReported(t, s)
				var got []string
				for _, id := range ids {
					got = append(got, letter(t, s, id).Queue+" "+letter(t, s, id).Error)
				}
				slices.Sort(got)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestTheSameSaidAgain checks a report that a consumer sends more than once. It must be stored as
// one annotation, which explains one death and never a second one.
func TestTheSameSaidAgain(t *testing.T) {
	t.Parallel()
	s, clock := open(t)
	a := deadletter.Annotation{MessageID: "m-1-0", Queue: "sms", Message: "x"}
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	judge(t, s)
	for i, want := range []deadletter.Annotated{{New: 1, Joined: 1}, {Again: 1}, {Again: 1}} {
		if sum := annotate(t, s, a); sum != want {
			t.Errorf("%d: %+v", i, sum)
		}
	}
	readReported(t, s)
	other := a
	other.Version = "2"
	if sum := annotate(t, s, other); sum != (deadletter.Annotated{New: 1}) {
		t.Errorf("of another version: %+v", sum)
	}
	clock.at = clock.at.Add(deadletter.AnnotationWindow + time.Second)
	if sum := annotate(t, s, a); sum != (deadletter.Annotated{New: 1}) {
		t.Errorf("after the window: %+v", sum)
	}
	if got := strings.Join(kinds(t, s, id), ", "); got != "received, dead, annotated" {
		t.Error(got)
	}
}

// TestAnAnnotationIsOfOneDeath checks that an annotation explains only one death. If the letter
// comes back, the annotation of the earlier death must not be used again. The annotation of the new
// death must be used, even if its text is the same.
func TestAnAnnotationIsOfOneDeath(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	w := window(t, 1, "sms", 1)
	said := deadletter.Annotation{MessageID: "m-1-0", Queue: "sms"}
	annotate(t, s, with(said, "first", ""))
	id := receive(t, s, w).New[0]
	judge(t, s)
	has := func(death, want string) {
		t.Helper()
		readReported(t, s)
		if got := saidOf(t, s, id); got != want {
			t.Errorf("%s death: %q, want %q", death, got, want)
		}
	}
	has("first", "first|first")

	var sent deadletter.Due
	send := func() {
		t.Helper()
		c.at = c.at.Add(time.Second)
		_, due := requeue(t, s, c, id)
		mark(t, s, c, deadletter.OutcomeConfirmed, due...)
		sent = due[0]
		c.at = c.at.Add(time.Second)
	}
	number := int64(1)
	comeBack := func() {
		t.Helper()
		number++
		b := returnWindow(t, number, sent, "sms", w.Arrivals[0].Body)
		b.Arrivals[0].Properties.MessageID = "m-1-0"
		fillFingerprints(t, &b)
		if r := receive(t, s, b); r.CameBack != 1 {
			t.Fatal(r)
		}
		if got := letter(t, s, id).Annotation; got != nil {
			t.Errorf("it died again, and has what was said before: %+v", got)
		}
		judge(t, s)
	}

	send()
	comeBack()
	has("second", "|") // no report yet
	annotate(t, s, with(said, "first", ""))
	has("second", "first|first") // the text of the report is the same

	send()
	annotate(t, s, with(said, "third", "")) // reported while the consumer has the letter
	has("second", "first|first")
	comeBack()
	has("third", "third|third")

	send()
	comeBack()
	late := with(said, "fourth", string(sent.Attempt.Token))
	// the letter is sent once more before anything is reported about the fourth death, and the
	// token identifies the death
	send()
	annotate(t, s, late)
	has("fourth", "fourth|fourth")
	comeBack()
	annotate(t, s, late)
	has("fifth", "|")

	send()
	annotate(t, s, with(said, "sixth", string(sent.Attempt.Token)))
	comeBack()
	has("sixth", "sixth|sixth")
}

func with(a deadletter.Annotation, message, token string) deadletter.Annotation {
	a.Message, a.Token = message, token
	return a
}

// TestPurgeErasesWhatWasSaid checks that a consumer's report is erased together with its letter. If
// a report explains several letters, it must be erased together with the last of them.
func TestPurgeErasesWhatWasSaid(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ids := receive(t, s, twins(t, 1, "sms", "email")).New
	judge(t, s)
	annotate(t, s, deadletter.Annotation{MessageID: "m-1-0", Message: "secret"})
	readReported(t, s)
	for i, left := range []int{1, 0} {
		operate(t, s, deadletter.VerbPurge, ids[i])
		if _, err := s.Advance(t.Context(), deadletter.OperationID(i+1), 10, nil); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := s.Reader().QueryRow(`SELECT count(*) FROM annotations`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != left || letter(t, s, ids[i]).Annotation != nil || letter(t, s, ids[i]).Error != "" {
			t.Errorf("after %d purges: %d annotations, %+v", i+1, n, letter(t, s, ids[i]))
		}
	}
}

// TestAnAnnotationOfManyLetters checks a consumer's report that names no queue, and therefore
// explains many letters with the same message. The store must join the report to these letters in
// several transactions, so that ingest does not have to wait for long. No letter may be left out.
func TestAnAnnotationOfManyLetters(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	w := window(t, 1, "sms", 1300)
	for i := range w.Arrivals {
		w.Arrivals[i].Body = []byte("same")
	}
	fillFingerprints(t, &w)
	receive(t, s, w)
	for range 3 {
		judge(t, s)
	}
	if sum := annotate(t, s, deadletter.Annotation{
		Body: sha([]byte("same")), Message: "x",
	}, deadletter.Annotation{MessageID: "m-1-7", Message: "y"}); sum != (deadletter.Annotated{New: 2, Joined: 1300}) {
		t.Errorf("%+v", sum)
	}
	n := 0
	for read := 1; read > 0; n += read {
		read = readReported(t, s)
	}
	if left := count(t, s, "state:dead error:x"); n != 1300 || left != 1300 {
		t.Errorf("%d letters read again, %d have it", n, left)
	}
}

// TestAnnotationsOfOnePlaceWithTwoNames checks two entries of the configuration that lead to the
// same broker and vhost. dlo receives a letter through one entry, and an annotation about this
// letter through the other entry. The annotation must explain the letter.
func TestAnnotationsOfOnePlaceWithTwoNames(t *testing.T) {
	t.Parallel()
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	s, err := store.Open(t.Context(), t.TempDir()+"/dlo.db", store.Options{
		Now: c.now,
		Brokers: []store.Broker{
			{Name: "main", Same: "main"},
			{Name: "second", Same: "main"},
			{Name: "other", Same: "other"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w, x := window(t, 1, "sms", 1), window(t, 1, "sms", 1)
	w.Broker, x.Broker = "second", "other"
	ids := append(receive(t, s, w).New, receive(t, s, x).New...)
	judge(t, s)
	annotate(t, s, deadletter.Annotation{MessageID: "m-1-0", Message: "x"})
	readReported(t, s)
	if got := saidOf(t, s, ids[0]) + " " + saidOf(t, s, ids[1]); got != "x|x |" {
		t.Error(got)
	}
}

func BenchmarkAnnotate(b *testing.B) {
	s, err := store.Open(context.Background(), b.TempDir()+"/dlo.db", store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	list := make([]deadletter.Annotation, 16)
	for n := 0; b.Loop(); n++ {
		for i := range list {
			list[i] = deadletter.Annotation{
				MessageID: fmt.Sprint(n, i), Queue: "sms", Message: "x", Stack: strings.Repeat("at x\n", 200),
			}
		}
		annotate(b, s, list...)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(list)), "us/annotation")
}

// BenchmarkAnnotateOneMessage measures a flood of reports on one message, each with a different
// text. A letter must not take longer than in a flood of different messages. Without the index of
// usable annotations, the time would grow with the square of the number of reports.
func BenchmarkAnnotateOneMessage(b *testing.B) {
	s, err := store.Open(context.Background(), b.TempDir()+"/dlo.db", store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	w := window(b, 1, "sms", 500)
	for i := range w.Arrivals {
		w.Arrivals[i].Properties.MessageID, w.Arrivals[i].Body = "m", []byte("same")
	}
	fillFingerprints(b, &w)
	for n := 0; b.Loop(); n++ {
		w.Number++
		list := make([]deadletter.Annotation, len(w.Arrivals))
		for i := range list {
			list[i] = deadletter.Annotation{MessageID: "m", Queue: "sms", Message: fmt.Sprint(n, i)}
		}
		if n%2 == 0 {
			annotate(b, s, list...)
		}
		receive(b, s, w)
		judge(b, s)
		if n%2 == 1 {
			annotate(b, s, list...)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(w.Arrivals)), "us/letter")
}
